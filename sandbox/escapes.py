"""What a terminal may be told by a program that nobody trusts: text, colours, and where the cursor goes.

Dropped are the strings that reach beyond the screen: OSC (titles, links, the clipboard, colours of
the whole terminal), DCS, APC, PM and SOS, and whatever asks the terminal for an answer, which would
be typed as if by a hand. ECMA-48 and xterm's ctlseqs name them.
"""

from __future__ import annotations

import enum
import re

_ESC, _BEL, _CAN, _SUB = 0x1B, 0x07, 0x18, 0x1A
_STRINGS = frozenset(b"]P_^X")
"""After ESC: OSC, DCS, APC, PM, SOS; they last until BEL (OSC) or ESC \\ ."""

_C1_STRINGS = frozenset((0x9D, 0x90, 0x9F, 0x9E, 0x98))
"""The same as one C1 character, which UTF-8 writes as C2 and this byte."""

_C1_CSI = 0x9B
# c: device attributes, n: reports, t: the window (its title is read back), x: parameters,
# q: xterm's version, p: mode requests, y: checksums, u: the keyboard's protocol; i is the printer's.
_ASKING = frozenset(b"cntxqpyui")
_MAX_CSI = 64


class _State(enum.Enum):
    TEXT = enum.auto()
    ESCAPE = enum.auto()
    CSI = enum.auto()
    STRING = enum.auto()
    STRING_ESCAPE = enum.auto()
    C2 = enum.auto()
    STRING_C2 = enum.auto()


# What ends a run of bytes that are all treated alike; most of any output is such runs.
_PLAIN = {
    _State.TEXT: re.compile(rb"[\x05\x1b\xc2]"),
    _State.STRING: re.compile(rb"[\x07\x18\x1a\x1b\xc2]"),
}


class Escapes:
    """A filter over a stream of bytes; what is cut between two pieces is kept until it is whole."""

    def __init__(self) -> None:
        self._state = _State.TEXT
        self._held = bytearray()

    def feed(self, data: bytes) -> bytes:
        """Return what may be shown of `data` and of what was held back."""
        out, at = bytearray(), 0
        while at < len(data):
            plain = _PLAIN.get(self._state)
            if plain is not None:
                end = found.start() if (found := plain.search(data, at)) else len(data)
                if self._state is _State.TEXT:
                    out += data[at:end]
                if end == len(data):
                    break
                at = end
            self._step(data[at], out)
            at += 1
        return bytes(out)

    def _step(self, byte: int, out: bytearray) -> None:
        match self._state:
            case _State.TEXT:
                self._text(byte, out)
            case _State.ESCAPE:
                self._escape(byte, out)
            case _State.CSI:
                self._csi(byte, out)
            case _State.C2:
                self._c1(byte, out)
            case _State.STRING:
                if byte in (_BEL, _CAN, _SUB):
                    self._state = _State.TEXT
                elif byte == _ESC:
                    self._state = _State.STRING_ESCAPE
                elif byte == 0xC2:
                    self._state = _State.STRING_C2
            case _State.STRING_ESCAPE:
                self._state = _State.TEXT
                if byte != ord("\\"):  # the string was broken off by another sequence
                    self._held[:] = b"\x1b"
                    self._state = _State.ESCAPE
                    self._escape(byte, out)
            case _State.STRING_C2:
                self._state = _State.TEXT if byte == 0x9C else _State.STRING

    def _text(self, byte: int, out: bytearray) -> None:
        if byte == _ESC:
            self._held[:] = b"\x1b"
            self._state = _State.ESCAPE
        elif byte == 0xC2:
            self._state = _State.C2
        elif byte != 0x05:  # ENQ asks for an answer too
            out.append(byte)

    def _escape(self, byte: int, out: bytearray) -> None:
        if byte in _STRINGS:
            self._state = _State.STRING
        elif byte == ord("["):
            self._held.append(byte)
            self._state = _State.CSI
        elif 0x20 <= byte <= 0x2F and len(self._held) < 4:  # an intermediate: a character set
            self._held.append(byte)
        elif byte == ord("Z"):  # DECID asks
            self._state = _State.TEXT
        else:
            self._state = _State.TEXT
            if 0x30 <= byte <= 0x7E:
                # With % a terminal leaves UTF-8, and single bytes become the controls of C1.
                if self._held[1:2] != b"%":
                    out += self._held
                    out.append(byte)
            else:
                self._text(byte, out)

    def _csi(self, byte: int, out: bytearray) -> None:
        if 0x20 <= byte <= 0x3F and len(self._held) < _MAX_CSI:
            self._held.append(byte)
            return
        self._state = _State.TEXT
        if 0x40 <= byte <= 0x7E:
            if self._harmless(byte):
                out += self._held
                out.append(byte)
        elif byte == _ESC or byte >= 0x80:
            self._text(byte, out)

    def _harmless(self, byte: int) -> bool:
        """Whether a sequence only sets something; with a byte like $ or # most ask or report."""
        words = bytes(self._held[2:])
        if byte not in _ASKING:
            return not any(0x20 <= word <= 0x2F for word in words)
        if byte == ord("p"):  # DECSTR
            return words == b"!"
        if byte == ord("q"):  # the cursor's shape
            return words.endswith(b" ")
        return byte == ord("u") and not words  # where the cursor was

    def _c1(self, byte: int, out: bytearray) -> None:
        """Decide over C2 and `byte`: a control of 8 bits, or a letter of Latin-1."""
        self._state = _State.TEXT
        if byte in _C1_STRINGS:
            self._state = _State.STRING
        elif byte == _C1_CSI:
            self._held[:] = b"\x1b["
            self._state = _State.CSI
        elif 0xA0 <= byte <= 0xBF:
            out += bytes((0xC2, byte))
        elif byte < 0x80:
            self._text(byte, out)
