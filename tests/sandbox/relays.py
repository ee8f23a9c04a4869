"""What stands in for rows and lets a relay be served: a gate in memory, its camera, and uvicorn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from sandbox.screen.capture import Capture, Captured, Snapshot
from sandbox.screen.gate import Close, Grant, Hand, Hint, Refused, Standing
from tests.sandbox.screens import PASSWORD, until


class MemoryCamera:
    """A camera whose pictures are numbered and whose rows are a list."""

    def __init__(self) -> None:
        self.rows: list[Captured] = []
        self.taken = 0
        self.before: Callable[[], Awaitable[None]] | None = None

    async def snap(self) -> Snapshot:
        if self.before is not None:
            await self.before()
        self.taken += 1
        return Snapshot(f"sha-{self.taken}", {"screenshot": f"sha-{self.taken}"})

    async def store(self, batch: list[Captured]) -> None:
        self.rows += batch

    async def close(self) -> None:
        pass


class MemoryGate:
    """A gate whose tickets are a dict; `control` and `end` are what the row would say."""

    def __init__(self, socket: Path | str) -> None:
        self.tickets: dict[str, Grant] = {}
        self.control = False
        self.end: Refused | None = None
        self.camera = MemoryCamera()
        self.announced = ""
        self.heard: list[Callable[[Hint], None]] = []
        self.quiet: list[Callable[[], Awaitable[None]]] = []
        self._socket = str(socket)

    def ticket(self, mode: str = "control", lease_id: int = 7) -> str:
        token = f"token-{len(self.tickets)}-{mode}"
        self.tickets[token] = Grant(lease_id, 1, 3, mode, self._socket, PASSWORD)
        return token

    async def redeem(self, token: str) -> Grant | Refused:
        return self.tickets.pop(token, None) or Refused(Close.NO_TICKET, "no such ticket")

    async def look(self, grant: Grant) -> Standing | Refused:
        return self.end or Standing(self.control)

    @contextmanager
    def hints(
        self, grant: Grant, heard: Callable[[Hint], None], quiet: Callable[[], Awaitable[None]]
    ) -> Iterator[None]:
        self.heard.append(heard)
        self.quiet.append(quiet)
        try:
            yield
        finally:
            self.heard.remove(heard)
            self.quiet.remove(quiet)

    async def announce(self, grant: Grant, socket: str) -> None:
        self.announced = socket

    def hand(self, grant: Grant) -> Hand | None:
        return Capture(self.camera)

    def hint(self, hint: Hint) -> None:
        for heard in list(self.heard):
            heard(hint)

    async def give(self, human: bool) -> None:
        """Change who has control as sandbox.leasing.leases does, and wait until the relay knows."""
        self.control = human
        self.hint(Hint(human_control=human))
        if human:
            taken = self.camera.taken
            await until(lambda: self.camera.taken > taken)  # a picture is taken as control begins


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[int]:
    """Serve `app` with uvicorn as production does; yield its port."""
    config = uvicorn.Config(
        app, port=0, ws="websockets-sansio", ws_per_message_deflate=False, lifespan="off",
        log_config=None, log_level="info",
    )  # fmt: skip
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    await until(lambda: server.started or task.done())
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await asyncio.wait_for(task, 60)
