"""Connections that a gateway has let in: both directions copied, with bounds on all that waits."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from sandbox.gateway import wire
from sandbox.gateway.admission import Admitted
from sandbox.provider import DesktopLost

BUFFER = 1 << 16
"""Bytes read at once; a direction holds at most a few times as many."""

IDLE_S = {"guest": 900.0, "rfb": 3600.0, "port": 900.0}
"""How long nothing may come from either side."""

SLOW_S = 60.0
"""How long a side may take none of the bytes that wait for it."""

CONNECT_S = 5.0
_LAST_BYTES_S = 5.0
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(eq=False, slots=True)
class Link:
    """One caller and the computer that it was let in to."""

    admitted: Admitted
    touched: float
    why: str = ""  # why it had to end; "" while it lasts, or if a side left
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def copy(self, caller: Streams, computer: Streams) -> None:
        """Copy until one side has gone, is too slow, or `end` is called."""
        self._writers = [caller[1], computer[1]]
        if self.why:  # its lease ended while the computer was dialled
            return self.end("")
        for writer in self._writers:
            writer.transport.set_write_buffer_limits(high=2 * BUFFER)
        ways = [
            asyncio.create_task(self._one_way(caller[0], computer[1])),
            asyncio.create_task(self._one_way(computer[0], caller[1])),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            if not self.why:
                await self._last_bytes()
            self.end("")

    def end(self, why: str) -> None:
        """Break the connection now, whatever still waits to be sent."""
        self.why = self.why or why
        for writer in self._writers:
            writer.transport.abort()

    def idle(self, now: float) -> bool:
        return now - self.touched > IDLE_S[self.admitted.service.partition(":")[0]]

    async def _one_way(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        clock = asyncio.get_running_loop().time
        try:
            while data := await reader.read(BUFFER):
                self.touched = clock()
                writer.write(data)
                async with asyncio.timeout(SLOW_S):
                    await writer.drain()
        except TimeoutError:
            self.end("a side takes no bytes")
        except OSError:
            pass  # a side broke: the other one learns it by its end

    async def _last_bytes(self) -> None:
        """Let what was written before a side left arrive."""
        for writer in self._writers:
            writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_LAST_BYTES_S):
                for writer in self._writers:
                    await writer.wait_closed()


async def open_computer(admitted: Admitted) -> Streams:
    """Connect to the service on this host; raises DesktopLost, StaleLease, PortClosed."""
    try:
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await asyncio.open_unix_connection(admitted.path, limit=BUFFER)
            try:
                if admitted.port is not None:
                    writer.write(wire.connect(admitted.port, admitted.epoch))
                    answer = await reader.readexactly(len(wire.ADMITTED))
                    wire.raise_unconnected(answer, port=admitted.port)
            except BaseException:
                writer.transport.abort()
                raise
            return reader, writer
    except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        raise DesktopLost(f"{admitted.sandbox} does not answer on its host: {error!r}") from error
