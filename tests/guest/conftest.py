"""A real desktop for the tests of this folder, started once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from sandbox import miniwob
from sandbox.provider import ActionResult, Desktop, SandboxSpec
from sandbox.providers.local import LocalProvider
from tests.sandbox.desktops import new_id
from trajectory import Action

Do = Callable[[Action], ActionResult]


@pytest.fixture(scope="session")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desktop]:
    provider = LocalProvider(tmp_path_factory.mktemp("sb"))
    shared = {miniwob.FOLDER: miniwob.assets()}
    handle = provider.start(SandboxSpec("guest", shared=shared))
    desktop = provider.connect(handle)
    yield desktop
    desktop.close()
    provider.stop(handle)


@pytest.fixture
def epoch(booted: Desktop) -> int:
    """A fresh lease of the desktop, with the programs of the test before gone."""
    epoch = int(str(booted.health()["epoch"])) + 1
    booted.fence(epoch)
    booted.shell(
        "for p in xterm mousepad xev; do pkill $p; while pgrep -x $p; do sleep 0.02; done; done;"
        "rm -f ~/*.txt",
        epoch=epoch, action_id=new_id(),
    )  # fmt: skip
    return epoch


@pytest.fixture
def do(booted: Desktop, epoch: int) -> Do:
    return lambda action: booted.perform(action, epoch=epoch, action_id=new_id())
