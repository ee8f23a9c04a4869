"""A real X display with a window manager, a hand that is xdotool, and recordings of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from Xlib import display as xdisplay

from recorder.session import Notices, Session, Wish
from recorder.spool import Consent, Folder, Task, events
from tests.waiting import until
from trajectory.recording import Event

needs_x = pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("Xvnc", "openbox", "xdotool", "xterm")),
    reason="needs tigervnc-standalone-server, openbox, xdotool and xterm",
)
Hand = Callable[..., None]


@contextmanager
def program(*argv: str, **options: object) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program for as long as a test needs it."""
    process = subprocess.Popen(
        argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options  # type: ignore[call-overload]
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def x_server(size: str = "1280x720") -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A display of its own, by its name, and its process."""
    read, write = os.pipe()
    server = subprocess.Popen(
        [
            *("Xvnc", "-displayfd", str(write), "-geometry", size, "-depth", "24"),
            *("-rfbport", "-1", "-SecurityTypes", "None", "-nolisten", "tcp", "-s", "0"),
        ],
        pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(write)
    try:
        with os.fdopen(read) as told:
            name = f":{told.readline().strip()}"
        yield name, server
    finally:
        server.terminate()
        server.wait()


@pytest.fixture(scope="session")
def screen() -> Iterator[str]:
    """The name of a display of 1280x720 with openbox."""
    with x_server() as (name, _), program("openbox", env={**os.environ, "DISPLAY": name}):
        connection = xdisplay.Display(name)
        root = connection.screen().root
        check = connection.intern_atom("_NET_SUPPORTING_WM_CHECK")
        until(lambda: root.get_full_property(check, 0), "the window manager")
        yield name
        connection.close()


@pytest.fixture
def hand(screen: str) -> Hand:
    def act(*words: str) -> None:
        environment = {**os.environ, "DISPLAY": screen, "LC_ALL": "C.UTF-8"}
        subprocess.run(["xdotool", *words], env=environment, check=True, timeout=30)

    return act


def to_front(hand: Hand, title: str) -> None:
    """Wait for a window and bring it forward; one that is being made may go again meanwhile."""

    def raised() -> bool:
        try:
            hand("search", "--sync", "--onlyvisible", "--name", title, "windowactivate", "--sync")
        except subprocess.SubprocessError:
            return False
        return True

    until(raised, f"the window {title}", deadline_s=120)


@pytest.fixture
def terminal(screen: str, hand: Hand) -> Iterator[str]:
    """An xterm in front that shows what is typed and runs nothing; gives its title."""
    title = f"paper-{time.monotonic_ns()}"
    environment = {**os.environ, "DISPLAY": screen, "LC_ALL": "C.UTF-8"}
    with program("xterm", "-T", title, "-e", "cat", env=environment):
        to_front(hand, title)
        yield title


@pytest.fixture
def bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A session bus of this test's own, which starts the accessibility bus when asked."""
    address = f"unix:path={tmp_path}/bus"
    with program("dbus-daemon", "--session", "--nofork", f"--address={address}") as daemon:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        until((tmp_path / "bus").exists, "the session bus")
        assert daemon.poll() is None
        yield


class Recorded:
    """A recording that a test makes."""

    def __init__(self, session: Session, troubles: list[str]) -> None:
        self.session, self.troubles = session, troubles

    @property
    def folder(self) -> Folder:
        return self.session.folder

    def events(self) -> list[Event]:
        """Return what is written by now, in the order of time."""
        return list(events(self.folder))

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events() if isinstance(event, kind)]

    def wait(self, true: Callable[[list[Event]], object], what: str) -> list[Event]:
        """Return the events once a condition holds for them."""
        until(lambda: true(self.events()), what)
        return self.events()

    def stop(self) -> list[Event]:
        self.session.stop()
        return self.events()


@pytest.fixture
def record(screen: str, tmp_path: Path) -> Iterator[Callable[..., Recorded]]:
    """Start a recording of the screen, without sound unless a source is named."""
    running: list[Session] = []

    def begin(microphone: str | None = None, root: Path | None = None) -> Recorded:
        troubles: list[str] = []
        wish = Wish(
            screen, root or tmp_path / "recordings", Task("", "A test", "Type something"),
            "demonstration", Consent("1", 0.0), microphone,
        )  # fmt: skip
        session = Session(wish, Notices(trouble=troubles.append))
        running.append(session)
        return Recorded(session, troubles)

    yield begin
    for session in running:
        session.stop()
