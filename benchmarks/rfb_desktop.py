"""A desktop that is all protocol: RFB 3.8 on a unix socket, faster than any relay before it.

`python -m benchmarks.rfb_desktop SOCKET`. An update request is answered by one small update, a
request for continuous updates by as many MiB as its width says; input is read and dropped.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys

VERSION = b"RFB 003.008\n"
NONE, VNC_AUTH = 1, 2
INIT = struct.pack(">HH16xI", 1280, 720, 4) + b"test"
ANSWER = b"\x00" * 32
CHUNK = b"\x00" * (1 << 18)
LENGTHS = {3: 10, 4: 8, 5: 6, 150: 10}


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Shake hands, then answer until the client leaves."""
    writer.write(VERSION)
    await reader.readexactly(12)
    writer.write(bytes((2, NONE, VNC_AUTH)))
    if await reader.readexactly(1) == bytes((VNC_AUTH,)):
        writer.write(os.urandom(16))
        await reader.readexactly(16)  # any password will do
    writer.write(bytes(4))
    await reader.readexactly(1)
    writer.write(INIT)
    buffer = b""
    while data := await reader.read(1 << 16):
        buffer += data
        at = 0
        while at < len(buffer) and at + (length := LENGTHS[buffer[at]]) <= len(buffer):
            if buffer[at] == 3:
                writer.write(ANSWER)
            elif buffer[at] == 150:
                mebibytes = int.from_bytes(buffer[at + 6 : at + 8], "big")
                for _ in range(mebibytes * (1 << 20) // len(CHUNK)):
                    writer.write(CHUNK)
                    await writer.drain()
            at += length
        buffer = buffer[at:]
    writer.close()


async def main(socket: str) -> None:
    server = await asyncio.start_unix_server(serve, socket)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(sys.argv[1]))
