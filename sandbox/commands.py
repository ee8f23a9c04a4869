"""Command lines that a shell tells of in a terminal's output; no Django.

`guest/terminal.bash` makes bash say ESC ] 7770 ; BASE64 BEL before it runs what somebody has
entered. The guest is not to be trusted: sizes are bounded, and how many count is for the caller, who
knows how often Enter was pressed.
"""

from __future__ import annotations

import base64
import binascii
import re

_TOLD = re.compile(rb"\x1b\]7770;([A-Za-z0-9+/=]{0,12000})\x07")
_BEGIN = b"\x1b]7770;"
_MOST = len(_BEGIN) + 12_000
MAX_COMMAND = 8192
"""Characters of one command line; the guest cuts what is longer."""


class Commands:
    """Finds what was told in a stream of bytes, also where it is cut between two pieces."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> list[str]:
        """Return the command lines that `data` completes, in order; empty ones are left out."""
        text = self._held + data
        found, end = [], 0
        for match in _TOLD.finditer(text):
            end = match.end()
            command = _decoded(match[1])
            if command:
                found.append(command)
        rest = text[end:]
        start = rest.rfind(_BEGIN)
        # Something may have begun; else only as much as a beginning that was cut.
        self._held = rest[start:] if start >= 0 else rest[-len(_BEGIN) + 1 :]
        if len(self._held) > _MOST:
            self._held = b""
        return found


def _decoded(text: bytes) -> str:
    try:
        command = base64.b64decode(text, validate=True).decode(errors="replace")
    except (binascii.Error, ValueError):
        return ""
    # PostgreSQL keeps no NUL, and a command line has no control characters but these.
    kept = "".join(c for c in command if c >= " " or c in "\n\t").strip()
    return kept[:MAX_COMMAND]
