"""What a key of this keyboard types: libxkbcommon, which toolkits ask as well.

https://xkbcommon.org/doc/current/: xkbcommon.h, xkbcommon-compose.h, xkbcommon-x11.h.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_int, c_int32, c_size_t, c_uint16, c_uint32, c_void_p
from enum import Enum

from recorder.capture.errors import CaptureError

_REAL_MODIFIERS = 0xFF
_GROUP_SHIFT, _GROUPS = 13, 3  # of the state of a core event
_COMPOSING, _COMPOSED, _CANCELLED = 1, 2, 3
_PACKAGES = "apt-get install libxkbcommon-x11-0 libxcb1 libx11-data"


class Composing(Enum):
    """What a key did to a sequence of dead keys."""

    NOTHING = 0
    WAITS = 1
    DONE = 2


class Keyboard:
    """The map of a display's keyboard; for one thread. Raises CaptureError."""

    def __init__(self, display: str) -> None:
        try:
            self._xkb = ctypes.CDLL("libxkbcommon.so.0")
            self._x11 = ctypes.CDLL("libxkbcommon-x11.so.0")
            self._xcb = ctypes.CDLL("libxcb.so.1")
        except OSError as error:
            raise CaptureError(f"{error}: {_PACKAGES}") from None
        _declare(self._xkb, self._x11, self._xcb)
        self._connection = self._xcb.xcb_connect(display.encode(), None)
        if self._xcb.xcb_connection_has_error(self._connection):
            raise CaptureError(f"no X server answers on display {display}")
        major, minor = c_uint16(), c_uint16()
        if not self._x11.xkb_x11_setup_xkb_extension(
            self._connection, 1, 0, 0, byref(major), byref(minor), None, None
        ):
            raise CaptureError("this X server has no XKB extension")
        self._context = self._xkb.xkb_context_new(0)
        self._keymap = self._state = None
        self._compose = self._composer()
        self.reload()

    def reload(self) -> None:
        """Read the map again: its person has another layout now. Raises CaptureError."""
        device = self._x11.xkb_x11_get_core_keyboard_device_id(self._connection)
        keymap = self._x11.xkb_x11_keymap_new_from_device(
            self._context, self._connection, device, 0
        )
        if not keymap:
            raise CaptureError("the X server does not tell the map of its keyboard")
        if self._keymap:
            self._xkb.xkb_state_unref(self._state)
            self._xkb.xkb_keymap_unref(self._keymap)
        self._keymap, self._state = keymap, self._xkb.xkb_state_new(keymap)

    def keysym(self, keycode: int, state: int) -> int:
        """Return the keysym of a key under the modifiers of a core event's state."""
        self._xkb.xkb_state_update_mask(
            self._state, state & _REAL_MODIFIERS, 0, 0, 0, 0, state >> _GROUP_SHIFT & _GROUPS
        )
        return int(self._xkb.xkb_state_key_get_one_sym(self._state, keycode))

    def plain(self, keycode: int, state: int) -> Sequence[int]:
        """Return the keysyms of a key without modifiers: of the layout in force, then of the others."""
        count = self._xkb.xkb_keymap_num_layouts_for_key(self._keymap, keycode)
        group = state >> _GROUP_SHIFT & _GROUPS
        found = []
        for layout in (group, *(n for n in range(count) if n != group)):
            keysyms = ctypes.POINTER(c_uint32)()
            number = self._xkb.xkb_keymap_key_get_syms_by_level(
                self._keymap, keycode, layout, 0, byref(keysyms)
            )
            if number:
                found.append(int(keysyms[0]))
        return found

    def name(self, keysym: int) -> str:
        buffer = ctypes.create_string_buffer(64)
        self._xkb.xkb_keysym_get_name(keysym, buffer, len(buffer))
        return buffer.value.decode()

    def character(self, keysym: int) -> str:
        """Return what a keysym types; "" for one that types nothing that can be seen."""
        code = int(self._xkb.xkb_keysym_to_utf32(keysym))
        return chr(code) if code and chr(code).isprintable() else ""

    def compose(self, keysym: int) -> tuple[Composing, str]:
        """Go on with a sequence of dead keys; return what it came to and the text of a whole one."""
        if not self._compose:
            return Composing.NOTHING, ""
        self._xkb.xkb_compose_state_feed(self._compose, keysym)
        status = self._xkb.xkb_compose_state_get_status(self._compose)
        if status == _COMPOSING:
            return Composing.WAITS, ""
        if status == _COMPOSED:
            buffer = ctypes.create_string_buffer(256)
            self._xkb.xkb_compose_state_get_utf8(self._compose, buffer, len(buffer))
            self.forget()
            return Composing.DONE, buffer.value.decode("utf-8", "replace")
        if status == _CANCELLED:
            self.forget()
            return Composing.DONE, ""
        return Composing.NOTHING, ""

    def forget(self) -> None:
        """Drop a sequence that was begun."""
        if self._compose:
            self._xkb.xkb_compose_state_reset(self._compose)

    def _composer(self) -> c_void_p | None:
        named = (os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
        locale = next((name for name in named if name), "C")
        for wanted in (locale, "en_US.UTF-8"):
            if wanted.split(".")[0] in ("C", "POSIX"):
                continue  # its table knows next to no dead key
            table = self._xkb.xkb_compose_table_new_from_locale(self._context, wanted.encode(), 0)
            if table:
                made: c_void_p = self._xkb.xkb_compose_state_new(table, 0)
                return made
        return None


def _declare(xkb: ctypes.CDLL, x11: ctypes.CDLL, xcb: ctypes.CDLL) -> None:
    """Say what goes in and comes out: without it ctypes cuts pointers to 32 bits."""
    xcb.xcb_connect.restype, xcb.xcb_connect.argtypes = c_void_p, [c_char_p, c_void_p]
    xcb.xcb_connection_has_error.argtypes = [c_void_p]
    x11.xkb_x11_setup_xkb_extension.argtypes = [
        *(c_void_p, c_uint16, c_uint16, c_int, c_void_p, c_void_p, c_void_p, c_void_p)
    ]
    x11.xkb_x11_get_core_keyboard_device_id.restype = c_int32
    x11.xkb_x11_get_core_keyboard_device_id.argtypes = [c_void_p]
    x11.xkb_x11_keymap_new_from_device.restype = c_void_p
    x11.xkb_x11_keymap_new_from_device.argtypes = [c_void_p, c_void_p, c_int32, c_int]
    for name, restype, argtypes in (
        ("xkb_context_new", c_void_p, [c_int]),
        ("xkb_state_new", c_void_p, [c_void_p]),
        ("xkb_state_unref", None, [c_void_p]),
        ("xkb_keymap_unref", None, [c_void_p]),
        ("xkb_state_update_mask", c_int, [c_void_p, *[c_uint32] * 6]),
        ("xkb_state_key_get_one_sym", c_uint32, [c_void_p, c_uint32]),
        ("xkb_keymap_num_layouts_for_key", c_uint32, [c_void_p, c_uint32]),
        ("xkb_keymap_key_get_syms_by_level", c_int, [c_void_p, *[c_uint32] * 3, c_void_p]),
        ("xkb_keysym_get_name", c_int, [c_uint32, c_char_p, c_size_t]),
        ("xkb_keysym_to_utf32", c_uint32, [c_uint32]),
        ("xkb_compose_table_new_from_locale", c_void_p, [c_void_p, c_char_p, c_int]),
        ("xkb_compose_state_new", c_void_p, [c_void_p, c_int]),
        ("xkb_compose_state_feed", c_int, [c_void_p, c_uint32]),
        ("xkb_compose_state_get_status", c_int, [c_void_p]),
        ("xkb_compose_state_get_utf8", c_int, [c_void_p, c_char_p, c_size_t]),
        ("xkb_compose_state_reset", None, [c_void_p]),
    ):
        function = getattr(xkb, name)
        function.restype, function.argtypes = restype, argtypes
