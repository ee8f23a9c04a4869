"""QMP, QEMU's control protocol: one JSON object per line on a unix socket.

https://www.qemu.org/docs/master/interop/qmp-spec.html
"""

from __future__ import annotations

import array
import contextlib
import json
import socket
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sandbox.provider import DesktopLost, SandboxError

_MAX_LINE = 8 << 20


class QmpError(SandboxError):
    """QEMU refused a command; the message is its own."""


class Monitor:
    """One connection to one monitor; QEMU serves one at a time and lets others wait."""

    def __init__(self, path: Path, *, timeout_s: float = 20.0) -> None:
        """Connect, waiting for a QEMU that starts; raises DesktopLost."""
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s
        self._buffer = b""
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._connect(path)
            self._line()  # the greeting
            self.run("qmp_capabilities")
        except BaseException:
            self._socket.close()
            raise

    def run(self, command: str, /, **arguments: Any) -> Any:
        """Run a command and return what it returns; raises QmpError, DesktopLost."""
        return self._ask(command, arguments, ())

    def give(self, name: str, fd: int) -> None:
        """Hand over an open file; later commands call it `name`."""
        self._ask("getfd", {"fdname": name}, (fd,))

    def give_set(self, number: int, fd: int) -> None:
        """Hand over an open file that commands may name as the file /dev/fdset/NUMBER."""
        self._ask("add-fd", {"fdset-id": number}, (fd,))

    def wait_for(self, command: str, wanted: Iterable[str], *, broken: Iterable[str] = ()) -> str:
        """Ask `command` until its "status" is in `wanted`; raises QmpError if it is in `broken`."""
        self._deadline = time.monotonic() + self._timeout_s
        while (status := str(self.run(command).get("status", ""))) not in wanted:
            if status in broken:
                raise QmpError(f"{command} says {status}")
            if time.monotonic() > self._deadline:
                raise DesktopLost(f"{command} still says {status} after {self._timeout_s:g} s")
            time.sleep(0.003)
        return status

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- the wire ----------------------------------------------------------------------------

    def _connect(self, path: Path) -> None:
        while True:
            try:
                return self._socket.connect(str(path))
            except (FileNotFoundError, ConnectionRefusedError) as error:
                if time.monotonic() > self._deadline:
                    raise DesktopLost(f"QEMU does not listen on {path}") from error
            time.sleep(0.003)

    def _ask(self, command: str, arguments: dict[str, Any], fds: tuple[int, ...]) -> Any:
        self._deadline = max(self._deadline, time.monotonic() + self._timeout_s)
        request = {"execute": command, **({"arguments": arguments} if arguments else {})}
        line = json.dumps(request).encode() + b"\n"
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self._socket.sendmsg([line], rights)
        except OSError as error:
            raise DesktopLost(f"QEMU is gone: {error}") from error
        while True:
            answer = self._line()
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise QmpError(f"{command}: {answer['error'].get('desc', answer['error'])}")
            # else an event: nobody waits for one

    def _line(self) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            left = self._deadline - time.monotonic()
            if left <= 0 or len(self._buffer) > _MAX_LINE:
                raise DesktopLost(f"QEMU did not answer within {self._timeout_s:g} s")
            self._socket.settimeout(left)
            data = b""
            with contextlib.suppress(TimeoutError):
                try:
                    data = self._socket.recv(1 << 16)
                except ConnectionError:
                    raise DesktopLost("QEMU is gone") from None
                if not data:
                    raise DesktopLost("QEMU is gone")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            answer = json.loads(line)
        except ValueError as error:
            raise DesktopLost(f"QEMU said no JSON: {line[:200]!r}") from error
        return answer if isinstance(answer, dict) else {}
