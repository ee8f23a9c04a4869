"""The real relay under uvicorn, with tickets in memory: `python -m benchmarks.relay_server SOCKET PORT`.

The tickets are "view", "control" and "capture", and may be used again.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext

import uvicorn

from sandbox.screen.capture import Capture, Captured, Snapshot
from sandbox.screen.gate import Close, Grant, Hand, Hint, Refused, Standing
from sandbox.screen.stream import Relay


class NoCamera:
    """Takes no picture and keeps no row: what is left is the cost of capturing itself."""

    async def snap(self) -> Snapshot:
        return Snapshot("", {})

    async def store(self, batch: list[Captured]) -> None:
        pass

    async def close(self) -> None:
        pass


class MemoryGate:
    """Implements sandbox.screen.gate.Gate without a database."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self._leases = 0

    async def redeem(self, token: str) -> Grant | Refused:
        if token not in ("view", "control", "capture"):
            return Refused(Close.NO_TICKET, "no such ticket")
        self._leases += 1
        mode = "view" if token == "view" else "control"
        # The password tells a captured screen from one that is not: the desktop takes any.
        return Grant(self._leases, 1, 1, mode, self._socket, token)

    async def look(self, grant: Grant) -> Standing | Refused:
        return Standing(human_control=True)

    def hints(
        self, grant: Grant, heard: Callable[[Hint], None], quiet: Callable[[], Awaitable[None]]
    ) -> AbstractContextManager[None]:
        return nullcontext()

    async def announce(self, grant: Grant, socket: str) -> None:
        pass

    def hand(self, grant: Grant) -> Hand | None:
        return Capture(NoCamera()) if grant.rfb_password == "capture" else None


if __name__ == "__main__":
    uvicorn.run(
        Relay(MemoryGate(sys.argv[1])),
        port=int(sys.argv[2]),
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        lifespan="off",
        log_level="warning",
    )
