"""Terminals: what their line says, with a real xterm and real prompts; nothing to tell is closed."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from recorder.capture.clock import Clock
from recorder.capture.sink import Sink
from recorder.capture.terminals import watch
from recorder.capture.terminals.line import asks_for_password
from recorder.redact import Denied, Detectors, Judge, Redaction
from tests.recorder.conftest import Hand, Recorded, needs_x, program, to_front
from tests.waiting import until
from trajectory.recording import ElementSeen, Event, KeyPressed

Record = Callable[..., Recorded]
GETPASS = f"exec {sys.executable} -c 'import getpass; getpass.getpass()'"


@contextmanager
def line(command: str) -> Iterator[Callable[[str], object]]:
    """A shell's command on a line of its own, below this process; gives what types there."""
    pid, master = pty.fork()
    if pid == 0:
        os.execvp("bash", ["bash", "--norc", "-c", command])
    try:
        yield lambda text: os.write(master, text.encode())
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(master)


def told(wanted: bool | None, what: str) -> None:
    until(lambda: asks_for_password(os.getpid()) is wanted, what)


@pytest.mark.parametrize(
    ("command", "asks"),
    [
        ("cat", False), ("cat | cat", False), ("read -s word", True), (GETPASS, True),
        ("exec bash --norc -i", False), ("stty -echo -icanon; exec cat", None),
    ],
)  # fmt: skip
def test_a_line_tells_what_it_does(command: str, asks: bool | None) -> None:
    with line(command):
        told(asks, command)


@pytest.mark.parametrize("name", ["ssh", "tmux", "docker", "sudo"])
def test_what_leads_elsewhere_can_not_be_told(name: str, tmp_path: Path) -> None:
    shutil.copy(shutil.which("sleep") or "", tmp_path / name)
    with line(f"exec {tmp_path / name} 60"):
        told(None, name)


def test_one_line_of_many_that_asks_closes_them_all() -> None:
    with line("cat"):
        told(False, "the first line")
        with line("read -s word") as answer:
            told(True, "the prompt")
            answer("word\n")
            told(False, "the end of the prompt")
    assert asks_for_password(os.getpid()) is None  # no line at all
    assert asks_for_password(0) is None


class Written:
    """Stands where the sink does."""

    def __init__(self) -> None:
        self.clock, self.events = Clock(), list[ElementSeen]()

    def put(self, event: ElementSeen) -> bool:
        self.events.append(event)
        return True


def test_what_was_looked_at_too_late_says_nothing_and_a_prompt_reaches_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer: list[bool | None] = [False]
    monkeypatch.setattr(watch, "asks_for_password", lambda pid: answer[0])
    sink = Written()
    terminals = watch.Terminals(cast(Sink, sink))
    until(lambda: sink.clock.now() > 1, "a moment")
    terminals.start()
    try:
        terminals.front(1, (0, 0, 9, 9))
        until(lambda: sink.events and sink.events[-1].password is False, "the line")
        terminals.typed(0.1, "a")
        until(lambda: len(sink.events) == 3, "word of the late look")
        assert [(e.t, e.password) for e in sink.events[1:2]] == [(0.1, None)]
        assert sink.events[-1].password is False
        answer[0] = True
        until(lambda: len(sink.events) == 5, "the prompt")
        assert (sink.events[-2].t, sink.events[-2].password) == (0.1, True)
        assert sink.events[-1].password is True
    finally:
        terminals.stop()


@pytest.fixture
def shell(
    screen: str, hand: Hand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[int]:
    """An xterm in front with a shell; gives its process. However busy the computer, no look is too late."""
    monkeypatch.setattr(watch, "_LATE_S", 60.0)
    title = f"shell-{time.monotonic_ns()}"
    environment = {**os.environ, "DISPLAY": screen, "LC_ALL": "C.UTF-8", "HOME": str(tmp_path)}
    with program("xterm", "-T", title, "-e", "bash", "--norc", env=environment) as terminal:
        to_front(hand, title)
        yield terminal.pid


def later(recorded: Recorded) -> None:
    """Wait until what is typed next is apart from what was typed before."""
    now = recorded.session.recorded()
    until(lambda: recorded.session.recorded() > now + 1.5, "the time after it")


def entered(events: list[Event]) -> int:
    return sum(isinstance(e, KeyPressed) and e.key == "enter" for e in events)


def lines(events: list[Event]) -> list[ElementSeen]:
    return [e for e in events if isinstance(e, ElementSeen) and e.role == "terminal"]


def kept(events: list[Event]) -> str:
    """Return what redaction leaves of what was typed."""
    judge = Judge(Detectors([]), Denied())
    for event in events:
        judge.take(event)
    removed: list[Redaction] = [r for r in judge.close() if "input" in r.streams]
    return "".join(
        "\n" if e.key == "enter" else e.text
        for e in events
        if isinstance(e, KeyPressed) and not any(r.began <= e.t <= r.ended for r in removed)
    )


@needs_x
def test_commands_are_kept_and_answers_to_prompts_are_not(
    record: Record, hand: Hand, shell: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    recorded = record()
    recorded.wait(lambda e: lines(e) and lines(e)[-1].password is False, "word of the shell")
    hand("type", "--delay", "5", "echo hello\n")
    later(recorded)
    hand("type", "--delay", "5", "read -s word\n")
    recorded.wait(lambda e: lines(e)[-1].password, "the prompt")
    hand("type", "--delay", "5", "canary4711\n")
    recorded.wait(lambda e: lines(e)[-1].password is False, "the end of the prompt")
    later(recorded)
    hand("type", "--delay", "5", "date\n")
    recorded.wait(lambda e: entered(e) >= 4, "the last key")
    # The last second before a prompt goes with it: its beginning is known only so well.
    assert kept(recorded.stop()) == "echo hello\ndate\n"


@needs_x
def test_who_answers_before_the_prompt_is_there_gives_nothing_away(
    record: Record, hand: Hand, shell: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    recorded = record()
    recorded.wait(lambda e: lines(e) and lines(e)[-1].password is False, "word of the shell")
    hand("type", "--delay", "5", "sleep 6; read -s word\n")
    later(recorded)
    hand("type", "--delay", "5", "canary")
    until(lambda: asks_for_password(shell), "the prompt")
    hand("type", "--delay", "5", "4711\n")
    recorded.wait(lambda e: entered(e) >= 2 and any(x.password for x in lines(e)), "the prompt")
    assert kept(recorded.stop()) == "sleep 6; read -s word"
