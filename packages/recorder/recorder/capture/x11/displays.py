"""What a display looks like: its size, its monitors, how much its person enlarges."""

from __future__ import annotations

import re

from Xlib import Xatom, display, error

from recorder.capture.errors import CaptureError
from recorder.spool import Screen

_USUAL_DPI = 96.0


def screen_of(name: str) -> Screen:
    """Ask an X server; raises CaptureError where none answers."""
    try:
        connection = display.Display(name)
    except (error.DisplayError, OSError) as failure:
        raise CaptureError(f"no X server answers on {name}: {failure}") from None
    try:
        screen = connection.screen()
        width, height = int(screen.width_in_pixels), int(screen.height_in_pixels)
        monitors = [(0, 0, width, height)]
        if connection.has_extension("RANDR"):
            told = screen.root.xrandr_get_monitors().monitors
            monitors = [
                (int(m.x), int(m.y), int(m.width_in_pixels), int(m.height_in_pixels)) for m in told
            ] or monitors
        resources = screen.root.get_full_property(Xatom.RESOURCE_MANAGER, Xatom.STRING)
        dpi = re.search(rb"Xft\.dpi:\s*([0-9.]+)", bytes(resources.value)) if resources else None
        scale = float(dpi[1]) / _USUAL_DPI if dpi else 1.0
        return Screen(width, height, tuple(monitors), round(scale, 3))
    finally:
        connection.close()
