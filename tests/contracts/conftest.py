"""A whole desktop of each kind that has programs, for the contracts of what it can do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import pytest

from sandbox.capabilities import (
    Clipboard,
    FileTree,
    Ports,
    Python,
    Recordings,
    Terminals,
    Windows,
)
from sandbox.provider import Desktop, Provider, SandboxSpec
from sandbox.providers import load
from tests.sandbox.desktops import needs_container, needs_local, new_id, skip_without_image


class Whole(Desktop, Clipboard, FileTree, Ports, Python, Recordings, Terminals, Windows, Protocol):
    """For the type checker: a desktop with everything."""


@pytest.fixture(
    params=[
        "fake",
        pytest.param("local", marks=needs_local),
        pytest.param("container", marks=needs_container),
    ],
    scope="module",
)
def provider(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Provider:
    if request.param == "container":
        skip_without_image()
    return load(request.param, state=tmp_path_factory.mktemp("sb"))


@pytest.fixture(scope="module")
def desktop(provider: Provider) -> Iterator[Whole]:
    handle = provider.start(SandboxSpec("whole", width=640, height=480))
    desktop = provider.connect(handle)
    yield desktop  # type: ignore[misc]
    desktop.close()
    provider.stop(handle)


@pytest.fixture
def epoch(desktop: Whole) -> int:
    """A fresh lease of the desktop: what the test before had open has ended."""
    epoch = int(str(desktop.health()["epoch"])) + 1
    desktop.fence(epoch)
    return epoch


@pytest.fixture
def run(desktop: Whole, epoch: int) -> Callable[[str], str]:
    return lambda command: desktop.shell(command, epoch=epoch, action_id=new_id()).output
