"""`python -m guest.outward SOCKET`: the sandbox's proxy at 127.0.0.1:3128, for programs that know HTTP proxies.

Bytes only: what may be reached is decided at the other end of the unix socket, outside the sandbox.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys

PORT = 3128
_CHUNK = 64 << 10


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


async def _serve(path: str) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_unix_connection(path)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, there[1]), _copy(there[0], writer))
        there[1].close()
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", PORT)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
