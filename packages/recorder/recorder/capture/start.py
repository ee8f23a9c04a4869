"""Whether this computer can be recorded, said before anybody begins."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from recorder.capture.errors import CaptureError


def display(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> str:
    """Return the X display to record; raises CaptureError that says what is not there yet."""
    if platform == "win32":
        raise CaptureError(
            "Windows can't be recorded yet: listeners for its mouse, keys, windows and screen "
            "are missing; Linux with an X server works"
        )
    if platform == "darwin":
        raise CaptureError(
            "macOS can't be recorded yet: listeners for its mouse, keys, windows and screen "
            "are missing; Linux with an X server works"
        )
    if environment.get("XDG_SESSION_TYPE") == "wayland" or environment.get("WAYLAND_DISPLAY"):
        raise CaptureError(
            "this is a Wayland session: it lets no program see the keys and the windows of others, so a "
            "recording would be full of holes; sign in again and choose the session named Xorg or X11"
        )
    name = environment.get("DISPLAY", "")
    if not name:
        raise CaptureError("no X display: DISPLAY is not set")
    return name
