"""The adb client of Debian's package `adb`, one call at a time, each with a deadline and a size limit.

A phone is a guest that may be hostile: no call reads more than it was told to expect.
"""

from __future__ import annotations

import os
import re
import secrets
import selectors
import shlex
import subprocess
import time
from dataclasses import dataclass

from sandbox.provider import DesktopLost

MOST_TEXT = 4 << 20
MOST_PICTURE = 64 << 20
_CALL_S = 15.0
_COMMAND_BYTES = 3500  # the oldest protocol carries a request of 4096 bytes


class DeviceGone(DesktopLost):
    """adb has no such device any more, or it stopped answering; the message is adb's own."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command on the device printed (stdout and stderr together) and its exit code."""

    output: bytes
    code: int

    @property
    def text(self) -> str:
        return self.output.decode(errors="replace")


class Adb:
    """One device by its serial (or HOST:PORT). `server` is adb's -L address; "" is the usual one."""

    def __init__(self, serial: str, *, server: str = "") -> None:
        self.serial = serial
        self._base = ["adb", *(["-L", server] if server else [])]

    def host(self, *words: str, timeout_s: float = _CALL_S) -> str:
        """Ask the adb server itself (`connect`, `devices`); raises DeviceGone."""
        return self._call([*self._base, *words], timeout_s, MOST_TEXT).decode(errors="replace")

    def device(self, *words: str, timeout_s: float = _CALL_S) -> str:
        """Run an adb command on the device (`push`, `emu`, `wait-for-device`); raises DeviceGone."""
        command = [*self._base, "-s", self.serial, *words]
        return self._call(command, timeout_s, MOST_TEXT).decode(errors="replace")

    def shell(self, command: str, *, timeout_s: float = _CALL_S, most: int = MOST_TEXT) -> Answer:
        """Run `command` by the device's sh; raises DeviceGone, ValueError for one that is too long.

        The exit code comes in a line of our own: devices before Android 7 don't send one.
        """
        mark = secrets.token_hex(8)
        whole = f"({command}\n) 2>&1; printf '\\n{mark} %d\\n' $?"
        if len(whole.encode()) > _COMMAND_BYTES:
            raise ValueError(f"a command for a phone has at most {_COMMAND_BYTES} bytes")
        end = re.compile(rf"\n{mark} (\d+)\n$".encode())
        words = [*self._base, "-s", self.serial, "exec-out", whole]
        out = self._call(words, timeout_s, most + 64, end)
        if (found := end.search(out)) is None:
            raise DeviceGone(f"{self.serial} broke off {command[:80]!r}")
        return Answer(out[: found.start()], int(found[1]))

    def picture(self) -> bytes:
        """Return the screen as PNG; raises DeviceGone."""
        command = [*self._base, "-s", self.serial, "exec-out", "screencap -p"]
        return self._call(command, _CALL_S, MOST_PICTURE)

    def _call(
        self,
        command: list[str],
        timeout_s: float,
        most: int,
        end: re.Pattern[bytes] | None = None,
    ) -> bytes:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            try:
                out, err, ended = _collect(process, time.monotonic() + timeout_s, most, end)
            except TimeoutError as error:
                raise DeviceGone(f"{self.serial}: {error}: {_words(command)}") from None
            finally:
                process.kill()
            code = process.wait()
        if code != 0 and not ended:
            said = (err or out).decode(errors="replace").strip()[-300:]
            raise DeviceGone(f"{self.serial}: {said or f'adb ended with {code}'}")
        return out


def _collect(
    process: subprocess.Popen[bytes], deadline: float, most: int, end: re.Pattern[bytes] | None
) -> tuple[bytes, bytes, bool]:
    """Return (stdout, stderr, False) once both are closed, or with True once stdout ends in `end`.

    What a command leaves running on the device may keep its output open. Raises TimeoutError past
    time or size.
    """
    assert process.stdout is not None and process.stderr is not None
    parts: dict[int, list[bytes]] = {process.stdout.fileno(): [], process.stderr.fileno(): []}
    size = 0
    with selectors.DefaultSelector() as selector:
        for descriptor in parts:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("no end in time")
            for key, _ in selector.select(left):
                chunk = os.read(key.fd, 1 << 16)
                parts[key.fd].append(chunk)
                size += len(chunk)
                if size > most:
                    raise TimeoutError(f"no end within {most} bytes")
                if not chunk:
                    selector.unregister(key.fd)
                elif end is not None and end.search(b"".join(parts[key.fd][-8:])):
                    return b"".join(parts[process.stdout.fileno()]), b"", True
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise TimeoutError("no end in time") from None
    out, err = (b"".join(chunks) for chunks in parts.values())
    return out, err, False


def _words(command: list[str]) -> str:
    return shlex.join(command)[:160]
