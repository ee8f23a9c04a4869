"""The part of the RFB protocol (RFC 6143) that stands between a browser and a desktop.

Pure: bytes in, bytes and values out, no sockets and no clock. The relay must agree with the desktop
to the byte about where a client's message ends: a client that could make the two disagree could
hide a key press inside a message that view-only lets through.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from sandbox.screen.des import vnc_response

VERSION = b"RFB 003.008\n"
SECURITY_NONE, SECURITY_VNC_AUTH = 1, 2

SET_PIXEL_FORMAT, SET_ENCODINGS, UPDATE_REQUEST, KEY, POINTER, CUT_TEXT = (
    0,
    2,
    3,
    4,
    5,
    6,
)
CONTINUOUS_UPDATES, FENCE, SET_DESKTOP_SIZE, QEMU = 150, 248, 251, 255

INPUT = frozenset({KEY, POINTER, CUT_TEXT, SET_DESKTOP_SIZE, QEMU})
"""What a viewer who does not hold the controls may not send."""

EXTENDED_MOUSE_BUTTONS = -316
MAX_CUT_TEXT = 1 << 20
MAX_ENCODINGS = 256
MAX_FENCE = 64
MAX_SCREENS = 16
MAX_HELD = 256
"""Keys down at once; X has no more keycodes."""

# Length of the messages that have one length; 0 where the header tells or the type is unknown.
_FIXED = [0] * 256
for _kind, _length in ((0, 20), (3, 10), (4, 8), (5, 6), (150, 10)):
    _FIXED[_kind] = _length
# How much of the others must be there before their length is known.
_HEADER = {SET_ENCODINGS: 4, CUT_TEXT: 8, FENCE: 9, SET_DESKTOP_SIZE: 7, QEMU: 2}


class ProtocolError(Exception):
    """The peer said something that RFB does not allow here; the message names it."""


class AuthenticationFailed(ProtocolError):
    """The desktop refused the password that its row gives."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key went down or up; `keycode` is 0 unless the browser sent a scan code too."""

    keysym: int
    down: bool
    keycode: int = 0


@dataclass(frozen=True, slots=True)
class Pointer:
    """The pointer is at (x, y) in pixels of the frame; bit n of `buttons` is button n + 1."""

    x: int
    y: int
    buttons: int


class ClientMessages:
    """Cuts what a client sends into whole messages, however the bytes were split on the way.

    SetEncodings comes out without ExtendedMouseButtons: with it a PointerEvent may be one byte
    longer, and only the desktop would know from when on.
    """

    def __init__(self) -> None:
        self._pending = bytearray()
        self._need = 1

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that `data` completes; raises ProtocolError."""
        if not self._pending:
            if data and _FIXED[data[0]] == len(data):
                return [data]  # what a browser sends nearly always
            buffer = data
        else:
            self._pending += data
            if len(self._pending) < self._need:
                return []
            buffer = bytes(self._pending)
            self._pending.clear()
        messages: list[bytes] = []
        at, end = 0, len(buffer)
        while at < end:
            length = _FIXED[buffer[at]] or self._length(buffer, at)
            if at + length > end:
                self._pending += buffer[at:]
                self._need = length
                break
            message = buffer[at : at + length]
            if message[0] == SET_ENCODINGS:
                message = without_encoding(message, EXTENDED_MOUSE_BUTTONS)
            messages.append(message)
            at += length
        return messages

    @staticmethod
    def _length(buffer: bytes, at: int) -> int:
        """Return how long the message at `at` is, or how much of it must come to know that."""
        kind = buffer[at]
        header = _HEADER.get(kind)
        if header is None:
            raise ProtocolError(f"unknown client message type {kind}")
        if len(buffer) - at < header:
            return header
        if kind == SET_ENCODINGS:
            count = int.from_bytes(buffer[at + 2 : at + 4], "big")
            _limit("encodings", count, MAX_ENCODINGS)
            return 4 + 4 * count
        if kind == CUT_TEXT:
            # Negative: the extended clipboard, with as many bytes as its absolute value.
            size = abs(int.from_bytes(buffer[at + 4 : at + 8], "big", signed=True))
            _limit("clipboard bytes", size, MAX_CUT_TEXT)
            return 8 + size
        if kind == FENCE:
            _limit("fence bytes", buffer[at + 8], MAX_FENCE)
            return 9 + buffer[at + 8]
        if kind == SET_DESKTOP_SIZE:
            _limit("screens", buffer[at + 6], MAX_SCREENS)
            return 8 + 16 * buffer[at + 6]
        if buffer[at + 1] != 0:
            raise ProtocolError(f"unknown QEMU message {buffer[at + 1]}")
        return 12


def _limit(what: str, count: int, most: int) -> None:
    if count > most:
        raise ProtocolError(f"{count} {what} at once; at most {most}")


def without_encoding(message: bytes, encoding: int) -> bytes:
    """Return a SetEncodings message that does not ask for `encoding`."""
    wanted = struct.pack(">i", encoding)
    if wanted not in message:
        return message
    offered = [message[i : i + 4] for i in range(4, len(message), 4)]
    kept = [item for item in offered if item != wanted]
    return struct.pack(">BxH", SET_ENCODINGS, len(kept)) + b"".join(kept)


def decode_input(message: bytes) -> Key | Pointer | None:
    """Return what a hand did; None for a message that is no key and no pointer.

    Raises ProtocolError for a keysym that X can't have (29 bits).
    """
    kind = message[0]
    if kind == POINTER:
        buttons, x, y = struct.unpack_from(">BHH", message, 1)
        return Pointer(x, y, buttons)
    if kind == KEY:
        down, keysym = struct.unpack_from(">BxxI", message, 1)
        return Key(_keysym(keysym), bool(down))
    if kind == QEMU:
        down, keysym, keycode = struct.unpack_from(">HII", message, 2)
        return Key(_keysym(keysym), bool(down), keycode)
    return None


def _keysym(value: int) -> int:
    if value >> 29:
        raise ProtocolError(f"{value:#x} is no keysym")
    return value


def encode_input(event: Key | Pointer) -> bytes:
    """Return the client message that says `event`."""
    if isinstance(event, Pointer):
        return struct.pack(">BBHH", POINTER, event.buttons, event.x, event.y)
    if event.keycode:
        return struct.pack(">BBHII", QEMU, 0, event.down, event.keysym, event.keycode)
    return struct.pack(">BBxxI", KEY, event.down, event.keysym)


@dataclass(slots=True)
class Held:
    """Which keys and buttons are down on the desktop, so that a change of hands can let go of them."""

    pointer: Pointer = Pointer(0, 0, 0)
    _keys: dict[tuple[int, int], None] = field(default_factory=dict)

    def apply(self, event: Key | Pointer) -> None:
        """Note what `event` changes; raises ProtocolError for more keys than there are."""
        if isinstance(event, Pointer):
            self.pointer = event
        elif event.down:
            self._keys[event.keysym, event.keycode] = None
            _limit("keys down", len(self._keys), MAX_HELD)
        elif event.keycode:
            # Shift may have changed the keysym since the press: the key is the same one.
            for name in [name for name in self._keys if name[1] == event.keycode]:
                del self._keys[name]
        else:
            self._keys.pop((event.keysym, 0), None)

    def pressed(self, event: Pointer) -> int:
        """Return the button bits that go down with `event`."""
        return event.buttons & ~self.pointer.buttons

    def let_go(self) -> list[Key | Pointer]:
        """Return the events that release everything, newest key first, and forget it."""
        events: list[Key | Pointer] = [
            Key(keysym, False, keycode) for keysym, keycode in reversed(self._keys)
        ]
        if self.pointer.buttons:
            self.pointer = Pointer(self.pointer.x, self.pointer.y, 0)
            events.append(self.pointer)
        self._keys.clear()
        return events


class BrowserHandshake:
    """The server's side of the handshake: the browser gets in by its ticket, so security is None."""

    greeting = VERSION

    def __init__(self) -> None:
        self._received = b""
        self._answered = 0

    def feed(self, data: bytes) -> tuple[bytes, bytes | None]:
        """Return (what to send, None), or (what to send, the bytes left over) once it is done.

        The client's ClientInit ends it; raises ProtocolError.
        """
        self._received += data
        reply = b""
        if self._answered == 0 and len(self._received) >= 12:
            if self._received[:12] != VERSION:
                raise ProtocolError(f"the client speaks {self._received[:12]!r}, not {VERSION!r}")
            reply += bytes((1, SECURITY_NONE))
            self._answered = 1
        if self._answered == 1 and len(self._received) >= 13:
            if self._received[12] != SECURITY_NONE:
                raise ProtocolError(f"the client chose security type {self._received[12]}")
            reply += bytes(4)
            self._answered = 2
        if self._answered == 2 and len(self._received) >= 14:
            return reply, self._received[14:]
        return reply, None


class DesktopHandshake:
    """The client's side of the handshake with the desktop, up to and with ClientInit (shared)."""

    def __init__(self, password: str) -> None:
        self._password = password
        self._received = b""
        self._step = "version"

    def feed(self, data: bytes) -> tuple[bytes, bytes | None]:
        """Return (what to send, None), or (what to send, the bytes left over) once it is done.

        Raises ProtocolError, and AuthenticationFailed where the password is wrong.
        """
        self._received += data
        reply = b""
        if self._step == "version" and len(self._received) >= 12:
            if self._take(12) != VERSION:
                raise ProtocolError("the desktop does not speak RFB 3.8")
            reply += VERSION
            self._step = "types"
        if self._step == "types" and self._received:
            count = self._received[0]
            if count == 0:
                raise ProtocolError(f"the desktop refused: {self._received[5:205]!r}")
            if len(self._received) > count:
                offered = self._take(1 + count)[1:]
                reply += self._choose(offered)
        if self._step == "challenge" and len(self._received) >= 16:
            reply += vnc_response(self._password, self._take(16))
            self._step = "result"
        if self._step == "result" and len(self._received) >= 4:
            if any(self._take(4)):
                raise AuthenticationFailed("the desktop refused the password on its row")
            return reply + b"\x01", self._received
        return reply, None

    def _choose(self, offered: bytes) -> bytes:
        if SECURITY_VNC_AUTH in offered and self._password:
            self._step = "challenge"
            return bytes((SECURITY_VNC_AUTH,))
        if SECURITY_NONE in offered:
            self._step = "result"
            return bytes((SECURITY_NONE,))
        raise ProtocolError(f"no way in: the desktop offers security types {list(offered)}")

    def _take(self, count: int) -> bytes:
        taken, self._received = self._received[:count], self._received[count:]
        return taken
