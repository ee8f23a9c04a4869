"""Believing that a computer is fresh: the right picture, this very start, nothing of the lease before.

Used where a computer becomes ready and by the canary. No Django here.
"""

from __future__ import annotations

import struct

from sandbox.provider import ActionFailed, Desktop, Frame, ProvisionFailed

MARKER = ".tandem-start"
"""A file that each start leaves in the home once it is proved; the next start must not find it."""

_PNG = b"\x89PNG\r\n\x1a\n"


def prove(desktop: Desktop, *, boot_id: str, epoch: int, width: int, height: int) -> None:
    """Check that this is start `boot_id`, that its screen is right, and that no earlier marker is left.

    Fences first, so that a caller of an older lease is refused from the first moment on.
    Raises ProvisionFailed, or what the desktop raises.
    """
    desktop.fence(epoch)
    found = str(desktop.health()["boot_id"])
    if found != boot_id:
        raise ProvisionFailed(f"the guest says that it is start {found[:40]!r}, not {boot_id!r}")
    check_picture(desktop.observe(), width=width, height=height)
    try:
        left = desktop.read_file(MARKER)
    except ActionFailed:  # no such file, or no files at all
        return
    raise ProvisionFailed(f"the home still holds the files of start {left[:40]!r}")


def mark(desktop: Desktop, *, boot_id: str, epoch: int) -> None:
    """Leave the marker of this start; a computer without files has nothing to carry over."""
    try:
        desktop.write_file(MARKER, boot_id.encode(), epoch=epoch)
    except ActionFailed:
        pass


def check_picture(frame: Frame, *, width: int, height: int) -> None:
    """Raise ProvisionFailed unless the frame is a PNG of exactly this size, in its own header too."""
    if (frame.width, frame.height) != (width, height):
        raise ProvisionFailed(f"it shows {frame.width}x{frame.height}, not {width}x{height}")
    if not frame.png.startswith(_PNG) or frame.png[12:16] != b"IHDR" or len(frame.png) < 24:
        raise ProvisionFailed(f"its picture is no PNG: it begins with {frame.png[:16]!r}")
    inside = struct.unpack(">II", frame.png[16:24])
    if inside != (width, height):
        raise ProvisionFailed(f"its PNG is {inside[0]}x{inside[1]}, not {width}x{height}")
