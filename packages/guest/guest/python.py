"""One Python of the user's whose names last from run to run; a child process, never our own."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from select import select

from guest.errors import ActionFailed
from guest.fencing import Gate, Result
from guest.processes import Place, end
from guest.shell import Head

MAX_CODE = 60_000
"""In bytes: an order fits into a pipe, so that sending it never waits."""

_MAX_TIMEOUT_MS = 600_000
_GRACE_S = 2.0
_CHILD = Path(__file__).with_name("namespace.py")


class Python:
    """Runs code; starts its child with the first run, and anew after the child has ended."""

    def __init__(self, gate: Gate, place: Place) -> None:
        self._gate = gate
        self._place = place
        self._child: _Child | None = None
        self._busy = threading.Lock()

    def run(self, code: str, *, epoch: int, timeout_ms: int) -> Result:
        """Run `code`; output is what it printed, then the value of a last expression or a traceback.

        exit_code: 0, 1 if it raised, 124 if `timeout_ms` passed: it is interrupted, and after 2 s
        the child is ended, with its names. Raises ActionFailed if another run does not end.
        """
        order = code.encode()
        if len(order) > MAX_CODE:
            raise ActionFailed(f"at most {MAX_CODE} bytes of code: write a file and import it")
        timeout_s = min(timeout_ms, _MAX_TIMEOUT_MS) / 1000
        if not self._busy.acquire(timeout=timeout_s):
            raise ActionFailed("Python is busy with another run")
        try:
            with self._gate.entered(epoch):
                if self._child is not None and self._child.dismissed:
                    self._child.close()
                    self._child = None
                child = self._child = self._child or _Child(self._place)
            try:
                return child.run(order, timeout_s)
            except EOFError as error:
                self._child = None
                return Result(f"{error}\n[Python ended: its names are gone]", child.close())
        finally:
            self._busy.release()

    def close(self) -> None:
        """End the child and what runs in it; the next run starts afresh."""
        child = self._child
        if child is not None:
            child.kill()


class _Child:
    def __init__(self, place: Place) -> None:
        self.dismissed = False
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        self._output, output = os.pipe()
        program = shutil.which("python3") or sys.executable
        command = [program, "-c", _CHILD.read_text(), str(orders), str(answers)]
        try:
            self._process = subprocess.Popen(
                command,
                cwd=place.home,
                env=place.variables(PYTHONUNBUFFERED="1", PYTHONIOENCODING="utf-8"),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(orders, answers),
                start_new_session=True,
            )
        except OSError as error:
            self._shut()
            raise ActionFailed(f"can't start {program}: {error.strerror}") from error
        finally:
            for descriptor in (orders, answers, output):
                os.close(descriptor)
        os.set_blocking(self._output, False)
        os.set_blocking(self._orders, False)

    def run(self, order: bytes, timeout_s: float) -> Result:
        """Send an order and wait for its answer; raises EOFError, with the output, at the end."""
        head = Head()
        try:
            os.write(self._orders, struct.pack("!Q", len(order)) + order)
        except OSError as error:
            raise EOFError("") from error
        if self._answered(head, timeout_s):
            return Result(head.text(), 0 if self._fine else 1)
        self._process.send_signal(signal.SIGINT)
        if not self._answered(head, _GRACE_S):
            raise EOFError(f"{head.text()}\n[ended after {timeout_s * 1000:.0f} ms]")
        return Result(f"{head.text()}\n[interrupted after {timeout_s * 1000:.0f} ms]", 124)

    def kill(self) -> None:
        """End it from another thread; a run that waits for it then finds the end."""
        self.dismissed = True
        end(self._process)

    def close(self) -> int:
        code = end(self._process)
        self._shut()
        return 124 if code == -signal.SIGKILL else code

    def _answered(self, head: Head, within_s: float) -> bool:
        """Collect output until the answer is there; False after `within_s`. Raises EOFError."""
        deadline = time.monotonic() + within_s
        while (left := deadline - time.monotonic()) > 0:
            ready = select([self._answers, self._output], [], [], left)[0]
            if self._output in ready:
                self._drain(head, deadline)
            if self._answers in ready:
                answer = os.read(self._answers, 1)
                self._drain(head, deadline)  # it flushed before it answered
                if not answer:
                    raise EOFError(head.text())
                self._fine = answer == b"+"
                return True
        return False

    def _drain(self, head: Head, deadline: float) -> None:
        while time.monotonic() < deadline:
            try:
                data = os.read(self._output, 64 * 1024)
            except BlockingIOError:
                return
            if not data:
                return
            head.add(data)

    def _shut(self) -> None:
        for descriptor in (self._orders, self._answers, self._output):
            os.close(descriptor)
