"""The size of a machine's emulated screen, by RandR.

In process: under emulation each start of `xrandr` costs half a second of processor time.
https://www.x.org/releases/current/doc/randrproto/randrproto.txt
"""

from __future__ import annotations

from typing import Any

from Xlib import display
from Xlib.ext import randr

MIN_SIDE, MAX_SIDE = 200, 4096
_RATE = 60


def resize(name: str, width: int, height: int) -> None:
    """Give display `name` this size in pixels; raises ValueError, OSError with what was refused."""
    if min(width, height) < MIN_SIDE or max(width, height) > MAX_SIDE:
        raise ValueError(f"a screen of {width}x{height} pixels")
    connection = display.Display(name)
    try:
        root = connection.screen().root
        # The current ones: asking for all has the driver look for monitors anew.
        resources = root.xrandr_get_screen_resources_current()
        output, crtc = resources.outputs[0], resources.crtcs[0]
        now = resources.config_timestamp
        known = (m.id for m in resources.modes if (m.width, m.height) == (width, height))
        mode = next(known, 0) or _mode(root, width, height)
        connection.xrandr_add_output_mode(output, mode)
        connection.grab_server()
        _set(connection, crtc, now, 0, [])
        root.xrandr_set_screen_size(width, height, round(width / 4), round(height / 4))
        _set(connection, crtc, now, mode, [output])
        connection.ungrab_server()
        connection.sync()
    finally:
        connection.close()


def _mode(root: Any, width: int, height: int) -> int:
    """Return a new mode of this size; any timing will do, nothing is scanned out."""
    across, down = width + 160, height + 30
    name = f"{width}x{height}_tandem"
    timing = {
        "id": 0,
        "width": width,
        "height": height,
        "dot_clock": across * down * _RATE,
        "h_sync_start": width + 48,
        "h_sync_end": width + 80,
        "h_total": across,
        "h_skew": 0,
        "v_sync_start": height + 3,
        "v_sync_end": height + 8,
        "v_total": down,
        "name_length": len(name),
        "flags": 0,
    }
    return int(root.xrandr_create_mode(timing, name).mode)


def _set(connection: display.Display, crtc: int, now: int, mode: int, outputs: list[int]) -> None:
    done = connection.xrandr_set_crtc_config(crtc, now, 0, 0, mode, randr.Rotate_0, outputs)
    if done.status != randr.SetConfigSuccess:
        raise OSError(f"the screen's mode was refused with status {done.status}")
