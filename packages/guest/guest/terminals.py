"""Terminals: programs on a PTY whose output is kept by offset, so that a reader may come back."""

from __future__ import annotations

import fcntl
import os
import secrets
import select
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from guest.errors import ActionFailed, NotFound
from guest.fencing import Gate, Ledger, Result
from guest.processes import Place, asleep, end

MAX_TERMINALS = 8
MAX_KEPT = 1024 * 1024
MAX_READ = 256 * 1024
MAX_WRITE = 64 * 1024
MAX_SIZE = 1000
TOLD = Path(__file__).with_name("terminal.bash")
_MAX_WAIT_MS = 30_000
_WRITE_S = 5.0
_INTERRUPT = b"\x03"
_PROMPT_S, _ANSWER_S, _LOOK_S = 2.0, 0.25, 0.002
# An endless output must leave the interpreter to the others: so much, then a pause.
_BURST, _PAUSE_S = 256 * 1024, 0.01
_KEPT_WRITES = 200
_LAST_READS = 256


class Terminal:
    """One program on a PTY. A thread reads it from the start; whoever asks gets what is kept."""

    def __init__(
        self, place: Place, command: str, *, columns: int, rows: int, timeout_ms: int
    ) -> None:
        self.ledger = Ledger(_KEPT_WRITES)
        self.exit_code: int | None = None
        self._kept = bytearray()
        self._begin = 0  # the offset of the first byte that is kept
        self._changed = threading.Condition()
        self._in_use = threading.Lock()
        self._closing = threading.Event()
        self._deadline = time.monotonic() + timeout_ms / 1000 if timeout_ms else float("inf")
        self._held_at, self._held_until = 0, 0.0
        self._master, slave = os.openpty()
        try:
            self.resize(columns, rows)
            shell = place.environment.get("SHELL") or "/bin/sh"
            self._process = subprocess.Popen(
                # setsid makes the PTY its controlling terminal: Ctrl+C and job control work. A
                # guest that was started in the background ignores Ctrl+C, and would leave that to
                # all that runs here: env gives every signal its usual meaning.
                [
                    *("env", "--default-signal", "setsid", "--ctty", shell),
                    *_words(shell, command),
                ],
                cwd=place.home,
                # In no locale at all a shell throws away what is typed beyond ASCII.
                env={"LANG": "C.UTF-8", **place.variables(TERM="xterm-256color")},
                stdin=slave,
                stdout=slave,
                stderr=slave,
            )
        except OSError as error:
            os.close(self._master)
            raise ActionFailed(f"can't open a terminal: {error}") from error
        finally:
            os.close(slave)
        os.set_blocking(self._master, False)
        if not command:
            self._hold(_PROMPT_S)
        self._reader = threading.Thread(target=self._read_all, name="terminal", daemon=True)
        self._reader.start()

    def read(self, offset: int, wait_ms: int) -> tuple[bytes, int, int | None]:
        """Return (data, the offset behind it, exit code); older output than is kept is left out."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._end > offset or self.exit_code is not None,
                min(wait_ms, _MAX_WAIT_MS) / 1000,
            )
            start = min(max(offset, self._begin), self._end)
            data = bytes(self._kept[start - self._begin :][:MAX_READ])
            behind = start + len(data)
            return data, behind, self.exit_code if behind == self._end else None

    def write(self, data: bytes) -> None:
        """Enter `data` as if typed; raises ActionFailed if the program does not take it.

        A shell dies of an interrupt before it is up, and drops the byte that comes with one. So an
        interrupt, and what follows it, waits a moment for the program to be listening.
        """
        left, deadline = memoryview(data), time.monotonic() + _WRITE_S
        while left:
            if self.exit_code is not None or time.monotonic() > deadline:
                raise ActionFailed(
                    f"the terminal took {len(data) - len(left)} of {len(data)} bytes"
                )
            before = bytes(left).find(_INTERRUPT)
            if before == 0 or self._held_until:
                self._wait_for_program()
            piece = left[: before or 1] if before >= 0 else left
            with self._using() as master:
                try:
                    if select.select([], [master], [], 0.1)[1]:
                        left = left[os.write(master, piece) :]
                        self._hold(_ANSWER_S if before == 0 else 0.0)
                except BlockingIOError:
                    continue

    def _hold(self, seconds: float) -> None:
        """Let what comes next wait for an answer of the program, at most so long."""
        self._held_at, self._held_until = self._end, seconds and time.monotonic() + seconds

    def _wait_for_program(self) -> None:
        """Wait until the program has shown something since and waits itself."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._end > self._held_at or self.exit_code is not None,
                max(0.0, self._held_until - time.monotonic()),
            )
        deadline = time.monotonic() + _ANSWER_S
        while self.exit_code is None and time.monotonic() < deadline:
            with self._using() as master:
                if asleep(os.tcgetpgrp(master)):
                    return
            time.sleep(_LOOK_S)

    def resize(self, columns: int, rows: int) -> None:
        """Tell the program the size of its window; raises ActionFailed."""
        if not (0 < columns <= MAX_SIZE and 0 < rows <= MAX_SIZE):
            raise ActionFailed(f"a terminal has 1 to {MAX_SIZE} columns and rows")
        with self._using() as master:
            fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def end(self) -> None:
        """Tell it to end; `close` waits until it has."""
        self._closing.set()

    def close(self) -> None:
        """End what runs in it, and let go of the PTY."""
        self.end()
        self._reader.join()
        with self._in_use:
            if self._master >= 0:
                os.close(self._master)
            self._master = -1

    @contextmanager
    def _using(self) -> Iterator[int]:
        """Hold the PTY's descriptor, so that its number can't be given to another file meanwhile."""
        with self._in_use:
            if self._master < 0:
                raise ActionFailed("the terminal was closed")
            try:
                yield self._master
            except BlockingIOError:
                raise
            except OSError as error:
                raise ActionFailed(f"the terminal has ended: {error.strerror}") from error

    @property
    def _end(self) -> int:
        return self._begin + len(self._kept)

    def _read_all(self) -> None:
        ended = os.pidfd_open(self._process.pid)
        burst, timed_out = 0, False
        # Woken each 0.1 s to see whether it shall close: simpler than a third descriptor.
        while not self._closing.is_set():
            ready = select.select([self._master, ended], [], [], 0.1)[0]
            if self._master in ready:
                burst += self._take()
            if ended in ready:
                break
            timed_out = time.monotonic() > self._deadline
            if timed_out:
                break
            if burst > _BURST:
                burst = 0
                time.sleep(_PAUSE_S)
        os.close(ended)
        code = end(self._process)
        # What the kernel still holds; a daemon that kept the PTY may go on writing for ever.
        for _ in range(_LAST_READS):
            if not self._take():
                break
        with self._changed:
            self.exit_code = 124 if timed_out else code
            self._changed.notify_all()

    def _take(self) -> int:
        try:
            data = os.read(self._master, 64 * 1024)
        except BlockingIOError:
            return 0
        except OSError:  # nobody has the other end open just now; the pidfd says when it is over
            time.sleep(_PAUSE_S)
            return 0
        with self._changed:
            self._kept += data
            if len(self._kept) > 2 * MAX_KEPT:
                self._begin += len(self._kept) - MAX_KEPT
                del self._kept[:-MAX_KEPT]
            self._changed.notify_all()
        return len(data)


def _words(shell: str, command: str) -> list[str]:
    """Return what the shell is started with: a person's bash tells of each command before it runs."""
    if command:
        return ["-c", command]
    return ["--rcfile", str(TOLD)] if Path(shell).name == "bash" else []


class Terminals:
    """The terminals of one computer, at most MAX_TERMINALS; they end with their holder's epoch."""

    def __init__(self, gate: Gate, place: Place) -> None:
        self._gate = gate
        self._place = place
        self._open: dict[str, Terminal] = {}
        self._lock = threading.Lock()

    def open(self, command: str, *, epoch: int, columns: int, rows: int, timeout_ms: int) -> str:
        """Start a shell, or `command` by it, and return the terminal's id; raises ActionFailed."""
        with self._gate.entered(epoch), self._lock:
            self._make_room()
            name = secrets.token_hex(8)
            self._open[name] = Terminal(
                self._place, command, columns=columns, rows=rows, timeout_ms=timeout_ms
            )
            return name

    def find(self, name: str) -> Terminal:
        """Return an open terminal; raises NotFound."""
        terminal = self._open.get(name)
        if terminal is None:
            raise NotFound("no such terminal: it was closed, or the computer changed hands")
        return terminal

    def write(self, name: str, data: bytes, *, epoch: int, action_id: str) -> bool:
        """Enter `data` once; return whether this action_id had been done before."""
        if len(data) > MAX_WRITE:
            raise ActionFailed(f"at most {MAX_WRITE} bytes at once can be typed, not {len(data)}")
        terminal = self.find(name)

        def work() -> Result:
            self._gate.check(epoch)
            terminal.write(data)
            return Result()

        return terminal.ledger.once(action_id, work)[1]

    def resize(self, name: str, *, columns: int, rows: int, epoch: int) -> None:
        self._gate.check(epoch)
        self.find(name).resize(columns, rows)

    def close(self, name: str, *, epoch: int) -> None:
        """End a terminal; fine if there is none."""
        self._gate.check(epoch)
        with self._lock:
            terminal = self._open.pop(name, None)
        if terminal is not None:
            terminal.close()

    def close_all(self) -> None:
        with self._lock:
            terminals, self._open = list(self._open.values()), {}
        for terminal in terminals:
            terminal.end()
        for terminal in terminals:
            terminal.close()

    def _make_room(self) -> None:
        """Forget the oldest that has ended if there are too many; raises ActionFailed."""
        if len(self._open) < MAX_TERMINALS:
            return
        for name, terminal in self._open.items():
            if terminal.exit_code is not None:
                del self._open[name]
                terminal.close()
                return
        raise ActionFailed(f"{MAX_TERMINALS} terminals are open already: close one first")
