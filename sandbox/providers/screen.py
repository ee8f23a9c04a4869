"""RFB 3.8 (RFC 6143) for what has pictures but no RFB of its own: a page, a phone.

JPEG pictures go out in Tight rectangles, keys and mouse come back.

The socket is a unix one that only its owner may open, so security is None; the relay in front of it
keeps people out.
"""

from __future__ import annotations

import asyncio
import io
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from PIL import Image

from sandbox.screen.rfb import (
    SECURITY_NONE,
    SET_ENCODINGS,
    SET_PIXEL_FORMAT,
    UPDATE_REQUEST,
    VERSION,
    ClientMessages,
    Key,
    Pointer,
    ProtocolError,
    decode_input,
)

RAW, TIGHT, CURSOR = 0, 7, -239
_QUALITIES = range(-32, -22)  # a client that names one takes JPEG
_TIGHT_JPEG = 0x90
_FORMAT = struct.pack(">BBBBHHHBBB3x", 32, 24, 0, 1, 255, 255, 255, 16, 8, 0)
_READ = 1 << 16

_ARROW = (
    "X........", "XX.......", "XoX......", "XooX.....", "XoooX....", "XooooX...", "XoooooX..",
    "XooooooX.", "XoooooooX", "XooooXXXX", "XoXXooX..", "XX.XooX..", "X...XooX.", "....XooX.",
    ".....XX..",
)  # fmt: skip
"""The pointer is not part of the picture: X black, o white. Drawn for this file."""

Seen = Callable[[bytes], None]
"""Called with each new picture (JPEG), on any thread."""

Act = Callable[[Key | Pointer], None]
"""Called with what a viewer did; it must not block for long."""


class View(Protocol):
    """What changes and can be looked at; it need not work while nobody does."""

    def watch(self, seen: Seen) -> None:
        """Tell `seen` of every new picture, beginning with the newest there is."""
        ...

    def unwatch(self, seen: Seen) -> None: ...


class Screen:
    """Serves one view to any number of viewers; all may type, for the relay decides who does."""

    def __init__(self, view: View, act: Act, *, width: int, height: int, name: str) -> None:
        self._view, self._act = view, act
        self._init = struct.pack(">HH16sI", width, height, _FORMAT, len(name)) + name.encode()
        self._size = width, height

    async def listen(self, path: Path) -> asyncio.AbstractServer:
        """Start serving on a unix socket."""
        return await asyncio.start_unix_server(self._serve, path)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if not await self._shake_hands(reader, writer):
                return
            await _Viewer(self._view, self._act, self._size, writer).run(reader)
        except (ProtocolError, ConnectionError, asyncio.IncompleteReadError):
            pass  # a viewer that leaves or errs concerns nobody else
        finally:
            writer.close()

    async def _shake_hands(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        writer.write(VERSION)
        if await reader.readexactly(12) != VERSION:
            return False
        writer.write(bytes((1, SECURITY_NONE)))
        if await reader.readexactly(1) != bytes((SECURITY_NONE,)):
            return False
        writer.write(bytes(4))
        await reader.readexactly(1)
        writer.write(self._init)
        return True


class _Viewer:
    """One connection: an update is sent when it was asked for and there is a new picture."""

    def __init__(
        self, view: View, act: Act, size: tuple[int, int], writer: asyncio.StreamWriter
    ) -> None:
        self._view, self._act, self._size, self._writer = view, act, size, writer
        self._loop = asyncio.get_running_loop()
        self._encodings: frozenset[int] = frozenset()
        self._shifts = (16, 8, 0)
        self._big_endian = False
        self._picture = b""
        self._fresh = self._wanted = self._pointed = False

    async def run(self, reader: asyncio.StreamReader) -> None:
        messages = ClientMessages()
        self._view.watch(self._seen)
        try:
            while data := await reader.read(_READ):
                for message in messages.feed(data):
                    self._handle(message)
                await self._writer.drain()
        finally:
            self._view.unwatch(self._seen)

    def _seen(self, picture: bytes) -> None:
        self._loop.call_soon_threadsafe(self._renew, picture)

    def _renew(self, picture: bytes) -> None:
        self._picture, self._fresh = picture, True
        self._answer()

    def _handle(self, message: bytes) -> None:
        kind = message[0]
        if kind == SET_ENCODINGS:
            count = (len(message) - 4) // 4
            self._encodings = frozenset(struct.unpack_from(f">{count}i", message, 4))
        elif kind == SET_PIXEL_FORMAT:
            self._set_format(message[4:])
        elif kind == UPDATE_REQUEST:
            self._wanted = True
            self._fresh = self._fresh or not message[1]
            self._answer()
        elif (event := decode_input(message)) is not None:
            self._act(event)

    def _set_format(self, form: bytes) -> None:
        bits, _, big, true_colour, *most = struct.unpack_from(">BBBBHHH", form)
        if bits != 32 or not true_colour or most != [255, 255, 255]:
            raise ProtocolError(f"pictures have 32 bits a pixel and 8 a colour here, not {bits}")
        self._big_endian = bool(big)
        self._shifts = struct.unpack_from(">BBB", form, 10)

    def _answer(self) -> None:
        if not (self._wanted and self._fresh and self._picture):
            return
        self._wanted = self._fresh = False
        rectangles = [self._rectangle()]
        if CURSOR in self._encodings and not self._pointed:
            self._pointed = True
            rectangles.insert(0, self._cursor())
        self._writer.write(struct.pack(">BxH", 0, len(rectangles)) + b"".join(rectangles))

    def _rectangle(self) -> bytes:
        width, height = self._size
        if TIGHT in self._encodings and not self._encodings.isdisjoint(_QUALITIES):
            head = struct.pack(">HHHHiB", 0, 0, width, height, TIGHT, _TIGHT_JPEG)
            return head + _compact(len(self._picture)) + self._picture
        with Image.open(io.BytesIO(self._picture)) as picture:
            pixels = self._pixels(picture.convert("RGB"))
        return struct.pack(">HHHHi", 0, 0, width, height, RAW) + pixels

    def _cursor(self) -> bytes:
        width, height = len(_ARROW[0]), len(_ARROW)
        picture = Image.new("RGB", (width, height))
        mask = Image.new("1", (width, height))
        for y, row in enumerate(_ARROW):
            for x, cell in enumerate(row):
                picture.putpixel((x, y), (255, 255, 255) if cell == "o" else (0, 0, 0))
                mask.putpixel((x, y), cell != ".")
        head = struct.pack(">HHHHi", 0, 0, width, height, CURSOR)
        return head + self._pixels(picture) + mask.tobytes()

    def _pixels(self, picture: Image.Image) -> bytes:
        """Return the pixels as the client wants them: 4 bytes each, colours where it said."""
        bands = dict(zip(self._shifts, picture.split(), strict=True))
        empty = Image.new("L", picture.size)
        order = (24, 16, 8, 0) if self._big_endian else (0, 8, 16, 24)
        return Image.merge("CMYK", [bands.get(shift, empty) for shift in order]).tobytes()


def _compact(length: int) -> bytes:
    """Return a length as Tight writes it: 7 bits a byte, the last of at most three has 8."""
    if length > 0x3FFFFF:
        raise ProtocolError("a picture of more than 4 MiB does not fit into a Tight rectangle")
    if length < 0x80:
        return bytes((length,))
    if length < 0x4000:
        return bytes((length & 0x7F | 0x80, length >> 7))
    return bytes((length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14))
