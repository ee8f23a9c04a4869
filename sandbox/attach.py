"""A person's terminal joined to one inside a computer: `manage.py sandbox shell`.

What the computer says passes `sandbox.escapes` first: a program in it is not to be trusted with the
clipboard, the title or the keyboard of the terminal outside.
"""

from __future__ import annotations

import os
import select
import termios
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager

from sandbox.capabilities import Terminals
from sandbox.escapes import Escapes
from sandbox.provider import ActionFailed

HANG_UP = b"\x1d"
"""Ctrl and ], as telnet has it."""

_END = b"\x04"
_POLL_S = 0.2
_CHUNK = 4096


def attach(
    desktop: Terminals, *, epoch: int, stdin: int, stdout: int, command: str = ""
) -> int | None:
    """Run a shell (or `command`) until it ends or HANG_UP is typed; return its exit code, None then.

    `stdin` and `stdout` are file descriptors, of a terminal or not. The end of a `stdin` that is none
    is passed on as the end of input. Raises what the desktop raises.
    """
    columns, rows = _size(stdout)
    terminal = desktop.open_terminal(epoch=epoch, columns=columns, rows=rows, command=command)
    ended = threading.Event()
    codes: list[int | None] = []
    failures: list[BaseException] = []

    def read() -> None:
        try:
            codes.append(_print(desktop, terminal, stdout, ended))
        except BaseException as error:  # raised again below, in the caller's thread
            failures.append(error)
        finally:
            ended.set()

    reader = threading.Thread(target=read, name="terminal output", daemon=True)
    try:
        with _raw(stdin):
            reader.start()
            _type(desktop, terminal, stdin, stdout, (columns, rows), ended, epoch)
    except ActionFailed:
        if not ended.wait(2):  # a program that has just ended takes no more keys
            raise
    finally:
        ended.set()
        reader.join(timeout=5)
        desktop.close_terminal(terminal, epoch=epoch)
    if failures:
        raise failures[0]
    return codes[0] if codes else None


def _print(desktop: Terminals, terminal: str, stdout: int, ended: threading.Event) -> int | None:
    escapes, offset = Escapes(), 0
    while True:
        output = desktop.read_terminal(terminal, offset=offset, wait_ms=1000)
        _write(stdout, escapes.feed(output.data))
        offset = output.offset
        if output.exit_code is not None:
            return output.exit_code
        if ended.is_set() and not output.data:
            return None


def _type(
    desktop: Terminals,
    terminal: str,
    stdin: int,
    stdout: int,
    size: tuple[int, int],
    ended: threading.Event,
    epoch: int,
) -> None:
    open_ = True
    while not ended.wait(0 if open_ else _POLL_S):
        if (now := _size(stdout)) != size:
            size = now
            desktop.resize_terminal(terminal, columns=now[0], rows=now[1], epoch=epoch)
        if not open_:
            # The end of a pipe lasts; one ^D may come before the shell reads its lines by itself.
            desktop.write_terminal(terminal, _END, epoch=epoch)
            continue
        if not select.select([stdin], [], [], _POLL_S)[0]:
            continue
        data = os.read(stdin, _CHUNK)
        if HANG_UP in data and os.isatty(stdin):
            return
        if data:
            desktop.write_terminal(terminal, data, epoch=epoch)
        open_ = bool(data)


def _write(stdout: int, data: bytes) -> None:
    while data:
        data = data[os.write(stdout, data) :]


def _size(fd: int) -> tuple[int, int]:
    try:
        size = os.get_terminal_size(fd)
        return size.columns, size.lines
    except OSError:  # a pipe or a file
        return 80, 24


@contextmanager
def _raw(stdin: int) -> Iterator[None]:
    """Pass every key on as it is typed, and put the terminal back afterwards."""
    if not os.isatty(stdin):
        yield
        return
    before = termios.tcgetattr(stdin)
    tty.setraw(stdin)
    try:
        yield
    finally:
        termios.tcsetattr(stdin, termios.TCSADRAIN, before)
