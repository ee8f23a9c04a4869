"""Joins a caller of the guest's socket to a program's TCP port on the computer's own loopback.

`CONNECT 127.0.0.1:PORT` with an X-Epoch header is answered by ADMITTED, byte for byte; from then on
the connection belongs to the program. It ends with either side, with the epoch, or when it is idle.
"""

from __future__ import annotations

import contextlib
import re
import select
import socket
import threading
import time
from collections.abc import Iterator

from guest.browser import CDP_PORT
from guest.errors import ActionFailed, GuestError, NotFound
from guest.fencing import Gate

ADMITTED = b"HTTP/1.1 200 OK\r\n\r\n"
MOST = 48
IDLE_S = 900.0

_LOOK_S = 1.0
_CHUNK = 1 << 16
_CONNECT_S = 3.0
_TARGET = re.compile(r"127\.0\.0\.1:([1-9][0-9]{0,4})")
_slots = threading.BoundedSemaphore(MOST)


@contextlib.contextmanager
def opened(target: str, epoch: str, gate: Gate) -> Iterator[socket.socket]:
    """Yield a connection to the program; raises StaleLease, NotFound, ActionFailed, GuestError."""
    found = _TARGET.fullmatch(target)
    if found is None or not epoch.isdecimal() or len(epoch) > 10:
        raise GuestError("say CONNECT 127.0.0.1:PORT, and the epoch in X-Epoch")
    gate.check(int(epoch))
    port = int(found[1])
    if port == CDP_PORT or port > 65535:
        raise NotFound(f"port {port} can't be reached from outside")
    if not _slots.acquire(blocking=False):
        raise ActionFailed(f"{MOST} connections to programs are open already")
    try:
        with _program(port) as program:
            yield program
    finally:
        _slots.release()


def copy(caller: socket.socket, program: socket.socket, gate: Gate) -> None:
    """Copy both ways; a side that reads slowly stops the other one from being read."""
    epoch, heard = gate.epoch, time.monotonic()
    peer = {caller: program, program: caller}
    waiting = {caller: b"", program: b""}  # what the side has yet to take
    for side in peer:
        side.setblocking(False)
    while gate.epoch == epoch and time.monotonic() - heard < IDLE_S:
        readers = [side for side in peer if not waiting[peer[side]]]
        writers = [side for side in peer if waiting[side]]
        readable, writable, _ = select.select(readers, writers, [], _LOOK_S)
        try:
            for side in writable:
                waiting[side] = waiting[side][side.send(waiting[side]) :]
            for side in readable:
                data = side.recv(_CHUNK)
                if not data:
                    return _last(waiting)
                waiting[peer[side]] = data
        except BlockingIOError:
            continue
        except OSError:
            return  # a side broke
        if readable or writable:
            heard = time.monotonic()


def _last(waiting: dict[socket.socket, bytes]) -> None:
    """Let what came before the end still arrive."""
    for side, data in waiting.items():
        with contextlib.suppress(OSError):
            side.settimeout(_CONNECT_S)
            side.sendall(data)


def _program(port: int) -> socket.socket:
    for address in ("127.0.0.1", "::1"):
        with contextlib.suppress(OSError):
            return socket.create_connection((address, port), _CONNECT_S)
    raise NotFound(f"nothing listens on port {port}")
