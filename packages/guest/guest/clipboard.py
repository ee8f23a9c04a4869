"""The clipboard, by xclip: it keeps what was set, and speaks both ways of handing over a big one."""

from __future__ import annotations

import os
import select
import subprocess
import time

from guest.errors import ActionFailed

MAX_BYTES = 1024 * 1024
_TIMEOUT_S = 5.0
_POLL_S = 0.01
_XCLIP = ("xclip", "-selection", "clipboard", "-target", "UTF8_STRING")


def read() -> str:
    """Return the clipboard's text, "" if it holds none; raises ActionFailed if it is too big."""
    with _started("-out", stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        text, deadline = bytearray(), time.monotonic() + _TIMEOUT_S
        try:
            while (left := deadline - time.monotonic()) > 0:
                if not select.select([process.stdout], [], [], left)[0]:
                    break
                piece = os.read(process.stdout.fileno(), 64 * 1024)
                if not piece:
                    return text.decode(errors="replace")
                text += piece
                if len(text) > MAX_BYTES:
                    raise ActionFailed(f"the clipboard holds more than {MAX_BYTES} bytes")
            raise ActionFailed("the program that owns the clipboard does not hand it over")
        finally:
            process.kill()


def write(text: str) -> None:
    """Put `text` on the clipboard; it stays until another program takes the clipboard."""
    data = text.encode()
    if len(data) > MAX_BYTES:
        raise ActionFailed(f"a clipboard text has at most {MAX_BYTES} bytes, not {len(data)}")
    # It reads all of it, then goes into the background as the owner.
    with _started("-in", stdin=subprocess.PIPE) as process:
        try:
            process.communicate(data, timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise ActionFailed("xclip did not take the text") from None
        if process.returncode:
            raise ActionFailed(f"xclip ended with status {process.returncode}")
    # It goes into the background a moment before it owns the clipboard.
    deadline = time.monotonic() + _TIMEOUT_S
    while read() != text:
        if time.monotonic() > deadline:
            raise ActionFailed("another program took the clipboard at once")
        time.sleep(_POLL_S)


def _started(way: str, *, stdin: int) -> subprocess.Popen[bytes]:
    # What stays behind as the owner must not hold a pipe of ours.
    output = subprocess.PIPE if way == "-out" else subprocess.DEVNULL
    try:
        return subprocess.Popen(
            [*_XCLIP, way],
            stdin=stdin,
            stdout=output,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise ActionFailed("the clipboard needs xclip: apt install xclip") from None
