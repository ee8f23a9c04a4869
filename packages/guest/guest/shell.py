"""Commands: run to the end with a limit, or started and left alone."""

from __future__ import annotations

import os
import selectors
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import IO

from guest.errors import ActionFailed
from guest.fencing import Result
from guest.processes import Place, end

_MAX_OUTPUT = 64 * 1024
_MAX_TIMEOUT_MS = 600_000
_PIECE = 64 * 1024


class Head:
    """The beginning of an output, and how long all of it was: an endless one costs no memory."""

    def __init__(self, limit: int = _MAX_OUTPUT) -> None:
        self._kept = bytearray()
        self._limit = limit
        self._total = 0

    def add(self, data: bytes) -> None:
        self._total += len(data)
        self._kept += data[: max(0, self._limit - len(self._kept))]

    def text(self) -> str:
        """Return what was kept; a note says what was cut."""
        text = self._kept.decode(errors="replace")
        if self._total > len(self._kept):
            text += f"\n[cut: {self._total} bytes in all]"
        return text


def run(command: str, *, timeout_ms: int, place: Place | None = None) -> Result:
    """Run `command` by sh in the home folder; stdout and stderr together, cut at 64 KiB.

    It is over when its shell has ended; what it left in the background goes on. A command that is
    still running after `timeout_ms` is ended with all of its session; exit_code is then 124.
    """
    place = place or Place()
    process = subprocess.Popen(
        ["sh", "-c", command],
        cwd=place.home,
        env=place.variables(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    head = Head()
    deadline = time.monotonic() + min(timeout_ms, _MAX_TIMEOUT_MS) / 1000
    if read_until_ended(process, process.stdout, head, deadline):
        return Result(output=head.text(), exit_code=process.wait())
    end(process)
    process.stdout.close()
    return Result(output=f"{head.text()}\n[ended after {timeout_ms} ms]", exit_code=124)


def read_until_ended(
    process: subprocess.Popen[bytes], output: IO[bytes], head: Head, deadline: float
) -> bool:
    """Read `output` into `head` until `process` has ended; False if `deadline` passed first."""
    os.set_blocking(output.fileno(), False)
    ended, whole = os.pidfd_open(process.pid), False
    try:
        with selectors.DefaultSelector() as waiting:
            waiting.register(ended, selectors.EVENT_READ)
            waiting.register(output, selectors.EVENT_READ)
            while (left := deadline - time.monotonic()) > 0:
                ready = {key.fd for key, _ in waiting.select(left)}
                if output.fileno() in ready and not _drain(output, head, deadline):
                    waiting.unregister(output)
                    whole = True
                if ended in ready:
                    if whole or not _drain(output, head, deadline):
                        output.close()
                    else:
                        _leave(output)
                    return True
    finally:
        os.close(ended)
    return False


def launch(argv: Sequence[str]) -> None:
    """Start a program and leave it; raises ActionFailed if it can't be started."""
    if not argv:
        raise ActionFailed("nothing to launch: argv is empty")
    try:
        process = subprocess.Popen(
            list(argv),
            cwd=os.path.expanduser("~"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ActionFailed(f"can't start {argv[0]}: {error}") from error
    threading.Thread(target=process.wait, name=f"reap {argv[0]}", daemon=True).start()


def _drain(output: IO[bytes], head: Head, deadline: float) -> bool:
    """Read what is there now; False once everybody has closed the other end."""
    while time.monotonic() < deadline:
        try:
            data = os.read(output.fileno(), _PIECE)
        except BlockingIOError:
            return True
        if not data:
            return False
        head.add(data)
    return True


def _leave(output: IO[bytes]) -> None:
    """Go on reading for what still writes there: a server in the background must not be stopped."""
    os.set_blocking(output.fileno(), True)

    def swallow() -> None:
        with output:
            while os.read(output.fileno(), _PIECE):
                pass

    try:
        threading.Thread(target=swallow, name="background output", daemon=True).start()
    except RuntimeError:  # the sandbox is at its limit of processes, threads included
        output.close()
