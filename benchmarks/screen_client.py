"""The client load of the relay benchmark: a blocking socket, so that it costs as little as it can."""

from __future__ import annotations

import os
import socket
import struct
from base64 import b64encode


class Client:
    """Reads and writes RFB bytes, over a WebSocket or (for the baseline) over a unix socket."""

    def __init__(self, stream: socket.socket, *, framed: bool) -> None:
        self._stream = stream
        self._framed = framed
        self._raw = bytearray(1 << 18)
        self._have: memoryview = memoryview(b"")
        self._left = 0  # bytes of the current frame that have not been read yet

    @classmethod
    def direct(cls, path: str) -> Client:
        stream = socket.socket(socket.AF_UNIX)
        stream.connect(path)
        return cls(stream, framed=False)

    @classmethod
    def websocket(cls, port: int, protocols: str) -> Client:
        """Open a WebSocket as a page of the same origin would."""
        stream = socket.create_connection(("127.0.0.1", port))
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream.sendall(
            "\r\n".join(
                (
                    "GET /ws/desktop/ HTTP/1.1",
                    f"Host: 127.0.0.1:{port}",
                    f"Origin: http://127.0.0.1:{port}",
                    "Upgrade: websocket",
                    "Connection: Upgrade",
                    "Sec-WebSocket-Version: 13",
                    f"Sec-WebSocket-Key: {b64encode(os.urandom(16)).decode()}",
                    f"Sec-WebSocket-Protocol: {protocols}",
                    "",
                    "",
                )
            ).encode()
        )
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            octet = stream.recv(1)
            if not octet:
                raise ConnectionError(f"no WebSocket on port {port}: {head!r}")
            head += octet
        if b" 101 " not in head:
            raise ConnectionError(f"no WebSocket on port {port}: {head[:80]!r}")
        return cls(stream, framed=True)

    def frame(self, data: bytes) -> bytes:
        """Return `data` as it goes on the wire: one WebSocket frame, masked with a key of zeros."""
        if not self._framed:
            return data
        size = len(data)
        if size < 126:
            return struct.pack(">BB4x", 0x82, 0x80 | size) + data
        return struct.pack(">BBH4x", 0x82, 0xFE, size) + data

    def send(self, data: bytes) -> None:
        self._stream.sendall(self.frame(data))

    def send_framed(self, frames: bytes) -> None:
        self._stream.sendall(frames)

    def read(self, count: int) -> bytes:
        """Return the next `count` bytes of RFB."""
        out = bytearray()
        while len(out) < count:
            out += self._some(count - len(out))
        return bytes(out)

    def skip(self, count: int) -> None:
        """Read `count` bytes and drop them."""
        while count:
            count -= len(self._some(count))

    def close(self) -> None:
        self._stream.close()

    def shake_hands(self) -> tuple[int, int]:
        """Do the RFB handshake with security None; return the desktop's size."""
        version = self.read(12)
        self.send(version)
        self.read(self.read(1)[0])
        self.send(b"\x01")
        if self.read(4) != bytes(4):
            raise ConnectionError("the desktop refused")
        self.send(b"\x01")
        width, height, name = struct.unpack(">HH16xI", self.read(24))
        self.skip(name)
        return width, height

    def _some(self, most: int) -> memoryview:
        """Return between 1 and `most` bytes of RFB."""
        if self._framed:
            while not self._left:
                self._left = self._next_frame()
            most = min(most, self._left)
        if not self._have:
            self._fill()
        piece, self._have = self._have[:most], self._have[most:]
        if self._framed:
            self._left -= len(piece)
        return piece

    def _next_frame(self) -> int:
        first, size = self._octets(2)
        if first == 0x89:  # a ping: no answer is due within a run
            self._octets(size)
            return 0
        if first != 0x82:
            reason = self._octets(size)
            raise ConnectionError(f"the relay sent a frame of type {first:#x}: {reason!r}")
        if size == 126:
            return int.from_bytes(self._octets(2), "big")
        if size == 127:
            return int.from_bytes(self._octets(8), "big")
        return size

    def _octets(self, count: int) -> bytes:
        out = b""
        while len(out) < count:
            if not self._have:
                self._fill()
            piece = self._have[: count - len(out)]
            self._have = self._have[len(piece) :]
            out += piece
        return out

    def _fill(self) -> None:
        got = self._stream.recv_into(self._raw)
        if not got:
            raise ConnectionError("the relay hung up")
        self._have = memoryview(self._raw)[:got]
