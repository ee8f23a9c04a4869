"""A terminal's Ctrl+C: it ends a program, never the shell, however early and from wherever it comes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from guest.processes import Place
from guest.terminals import Terminal

Open = Callable[[str, str], Terminal]


@pytest.fixture
def open_terminal(tmp_path: Path) -> Iterator[Open]:
    opened: list[Terminal] = []

    def begin(shell: str, command: str) -> Terminal:
        place = Place(tmp_path, {**os.environ, "SHELL": shell, "PS1": "$ "})
        opened.append(Terminal(place, command, columns=80, rows=24, timeout_ms=0))
        return opened[-1]

    yield begin
    for terminal in opened:
        terminal.close()


def shown(terminal: Terminal, what: bytes) -> bytes:
    """Return what was shown until `what` came, or the program ended."""
    seen, offset, deadline = b"", 0, time.monotonic() + 60
    while what not in seen and time.monotonic() < deadline:
        data, offset, code = terminal.read(offset, 500)
        seen += data
        if code is not None:
            break
    return seen


def test_an_interrupt_before_the_prompt_does_not_end_the_shell(
    open_terminal: Open, tmp_path: Path
) -> None:
    slow = tmp_path / "slow"  # comes up late, as any shell on a busy host
    slow.write_text(
        "#!/bin/sh\n: > up\nfor n in $(seq 99); do /bin/true; done\nexec bash --norc -i\n"
    )
    slow.chmod(0o755)
    terminal = open_terminal(str(slow), "")
    deadline = time.monotonic() + 60
    while not (tmp_path / "up").exists():
        assert time.monotonic() < deadline
    terminal.write(b"\x03echo $((40+2))done\n")
    assert b"42done" in shown(terminal, b"42done")


def test_what_follows_an_interrupt_is_heard(open_terminal: Open) -> None:
    terminal = open_terminal("/bin/bash", "")
    for n in range(10):
        terminal.write(b"abandoned\x03echo $((%d+2))done\n" % n)
    assert b"11done" in shown(terminal, b"11done")


def test_a_guest_that_ignores_interrupts_does_not_pass_that_on(open_terminal: Open) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        terminal = open_terminal("/bin/bash", "echo begun; exec sleep 1000")
    finally:
        signal.signal(signal.SIGINT, before)
    assert b"begun" in shown(terminal, b"begun")
    terminal.write(b"\x03")
    shown(terminal, b"never")
    assert terminal.exit_code == -signal.SIGINT
