"""Setups and verifiers: what can be written, and what they do to a desktop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox import miniwob, setups
from sandbox.images import spec_for
from sandbox.provider import ActionFailed, ActionResult, Desktop, ProvisionFailed, SandboxSpec
from sandbox.providers.fake import FakeProvider
from sandbox.providers.local import LocalProvider
from tests.sandbox.desktops import needs_local, new_id
from trajectory import Action, Click, Navigate, NavigateBack, OpenApp, Type

Do = Callable[[Action], ActionResult]


@pytest.fixture
def fake() -> Iterator[Desktop]:
    handle = FakeProvider().start(SandboxSpec("setups"))
    desktop = FakeProvider().connect(handle)
    desktop.fence(1)
    yield desktop
    FakeProvider().stop(handle)


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desktop]:
    provider = LocalProvider(tmp_path_factory.mktemp("sb"))
    handle = provider.start(spec_for(SandboxSpec("setups")))
    desktop = provider.connect(handle)
    yield desktop
    desktop.close()
    provider.stop(handle)


@pytest.fixture
def epoch(booted: Desktop) -> int:
    epoch = int(str(booted.health()["epoch"])) + 1
    booted.fence(epoch)
    return epoch


@pytest.fixture
def do(booted: Desktop, epoch: int) -> Do:
    def perform(action: Action) -> ActionResult:
        result = booted.perform(action, epoch=epoch, action_id=new_id())
        booted.settle()
        return result

    return perform


# -- what can be written -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setup", "problem"),
    [
        ({}, "must be a list"),
        (["x"], "step 1: must be an object"),
        ([{"kind": "magic"}], "step 1: kind 'magic' is unknown; known: family, miniwob"),
        ([{"kind": ["x"]}], "is unknown"),
        ([{"kind": "miniwob", "page": "click-button"}], "miniwob.seed is missing"),
        ([{"kind": "miniwob", "page": "click-button", "seed": "7"}], "must be a whole number"),
        ([{"kind": "miniwob", "page": "click-button", "seed": True}], "must be a whole number"),
        ([{"kind": "miniwob", "page": "../../x", "seed": 1}], "no page '../../x'"),
        ([{"kind": "launch", "argv": []}], "not empty"),
        ([{"kind": "launch", "argv": ["a", 1]}], "list of texts"),
        ([{"kind": "open_url", "url": "x", "extra": 1}], "no field 'extra'"),
    ],
)
def test_a_wrong_setup_is_named(setup: object, problem: str) -> None:
    [message] = setups.check_setup(setup)
    assert problem in message


def test_a_right_setup_and_verifier() -> None:
    assert setups.check_setup([]) == []
    assert setups.check_setup([{"kind": "miniwob", "page": "click-button", "seed": 7}]) == []
    assert setups.check_verifier({}) == []
    assert setups.check_verifier({"kind": "miniwob"}) == []
    assert "file_equals.text is missing" in setups.check_verifier(
        {"kind": "file_equals", "path": "a"}
    )


# -- files and commands ------------------------------------------------------------------------


def test_files_are_written_and_judged(fake: Desktop) -> None:
    setups.set_up(fake, [{"kind": "write_file", "path": "a/b.txt", "text": "one\ntwo\n"}], epoch=1)
    equals = {"kind": "file_equals", "path": "a/b.txt"}
    assert setups.verify(fake, {**equals, "text": "one\ntwo"}).reward == 1
    assert setups.verify(fake, {**equals, "text": "one"}).reward == 0
    contains = {"kind": "file_contains", "path": "a/b.txt", "text": "two"}
    assert setups.verify(fake, contains) == setups.Verdict(
        1.0, "a/b.txt contains what it should", True
    )
    missing = setups.verify(fake, {"kind": "file_equals", "path": "no.txt", "text": ""})
    assert (missing.reward, missing.detail) == (0.0, "no file no.txt")


def test_a_command_is_judged_by_what_it_prints(fake: Desktop) -> None:
    verifier = {"kind": "shell", "command": "expr 1 + 1", "expect": "2"}
    assert setups.verify(fake, verifier).reward == 1
    assert setups.verify(fake, {**verifier, "expect": "3"}).reward == 0


def test_no_verifier_says_nothing(fake: Desktop) -> None:
    assert setups.verify(fake, {}).reward is None


def test_running_a_setup_again_launches_nothing_twice(fake: Desktop) -> None:
    setup = [{"kind": "launch", "argv": ["mousepad"]}]
    setups.set_up(fake, setup, epoch=1)
    before = fake.observe().png
    started = time.monotonic()
    setups._WINDOW_WITHIN_S, kept = 0.2, setups._WINDOW_WITHIN_S
    try:
        setups.set_up(fake, setup, epoch=1)
    finally:
        setups._WINDOW_WITHIN_S = kept
    assert fake.observe().png == before
    assert time.monotonic() - started < 10


def test_an_unknown_image_is_named() -> None:
    with pytest.raises(ProvisionFailed, match="no image 'windows'"):
        spec_for(SandboxSpec("x", image="windows"))


# -- pages -------------------------------------------------------------------------------------


@needs_local
def test_a_miniwob_task_from_start_to_reward(booted: Desktop, epoch: int, do: Do) -> None:
    setups.set_up(booted, [{"kind": "miniwob", "page": "login-user", "seed": 7}], epoch=epoch)
    frame = booted.observe(elements=True)
    assert frame.url == miniwob.url("login-user")
    found = {element.name: element for element in frame.elements or ()}
    assert setups.verify(booted, {"kind": "miniwob"})[:3] == (
        0.0,
        "the episode has not ended",
        False,
    )
    for name, text in (("Username", "keli"), ("Password", "1b")):
        do(Click(*found[name].centre))
        do(Type(text))
    typed = {e.name: e for e in booted.observe(elements=True).elements or ()}
    assert (typed["Username"].value, typed["Password"].focused) == ("keli", True)
    do(Click(*found["Login"].centre))
    assert setups.verify(booted, {"kind": "miniwob"})[:3] == (1.0, "raw reward 1", True)


@needs_local
def test_the_next_task_on_the_same_desktop(booted: Desktop, epoch: int) -> None:
    step = {"kind": "miniwob", "page": "click-button", "seed": 3}
    setups.set_up(booted, [step], epoch=epoch)
    first = booted.observe(elements=True).elements
    setups.set_up(booted, [step], epoch=epoch)
    assert booted.observe(elements=True).elements == first
    assert setups.verify(booted, {"kind": "miniwob"}).reward == 0


@needs_local
def test_pages_open_and_go_back(booted: Desktop, epoch: int, do: Do) -> None:
    first, second = miniwob.url("click-link"), miniwob.url("click-tab")
    setups.set_up(booted, [{"kind": "open_url", "url": first}], epoch=epoch)
    do(Navigate(second))
    assert booted.observe(elements=True).url == second
    do(NavigateBack())
    _wait(lambda: booted.observe(elements=True).url == first)
    with pytest.raises(setups.SetupFailed, match="ERR_FILE_NOT_FOUND"):
        setups.set_up(booted, [{"kind": "open_url", "url": "file:///nothing"}], epoch=epoch)
    with pytest.raises(ActionFailed):
        booted.evaluate("nothing.here")


@needs_local
def test_a_covered_page_has_no_elements(booted: Desktop, epoch: int, do: Do) -> None:
    url = miniwob.url("click-link")
    setups.set_up(booted, [{"kind": "open_url", "url": url}], epoch=epoch)
    assert booted.observe(elements=True).url == url
    do(OpenApp("terminal"))
    _wait(lambda: booted.observe(elements=True).elements == ())
    do(OpenApp("browser"))
    _wait(lambda: booted.observe(elements=True).url == url)


@needs_local
def test_the_browser_keeps_its_own_sandbox(booted: Desktop, epoch: int) -> None:
    setups.set_up(booted, [{"kind": "open_url", "url": "about:blank"}], epoch=epoch)
    command = (
        "for p in $(pgrep -f -- --type=renderer); do grep -E '^Seccomp:' /proc/$p/status; done"
    )
    found = booted.shell(command, epoch=epoch, action_id=new_id()).output.split("\n")
    assert "Seccomp:\t2" in found
    flags = booted.shell("cat /proc/$(pgrep -o chromium)/cmdline", epoch=epoch, action_id=new_id())
    assert "--no-sandbox" not in flags.output


def _wait(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_pages_are_shared_from_the_package() -> None:
    shared = spec_for(SandboxSpec("x")).shared
    assert (shared[miniwob.FOLDER] / "html" / "miniwob" / "click-button.html").is_file()
    assert isinstance(shared[miniwob.FOLDER], Path)
