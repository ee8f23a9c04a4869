"""What all programs of the desktop say about themselves: the AT-SPI tree, read over D-Bus.

AT-SPI 2 (at-spi2-core, xml/*.xml): each program answers on the accessibility bus for its own widgets. All
questions of one level of the tree are sent before the first answer is read, so a window of a few hundred
widgets takes about 0.1 s. Programs are hostile here: counts, sizes and time are bounded.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from jeepney import DBusAddress, HeaderFields, MessageType, Properties, new_method_call
from jeepney.io.blocking import DBusConnection, open_dbus_connection

from trajectory import Element

LIMIT = 2000
_DEPTH, _CHILDREN, _TEXT = 60, 500, 2000
_SECONDS = 2.0
_A11Y = "org.a11y.atspi."
_ACTIVE, _CHECKED, _EDITABLE, _FOCUSED, _SHOWING = 1, 4, 7, 12, 25  # bits of AtspiStateType
_ROLES = {
    "push button": "button", "toggle button": "button", "entry": "textbox", "text": "textbox",
    "password text": "textbox", "check box": "checkbox", "radio button": "radio",
    "combo box": "combobox", "menu item": "menuitem", "check menu item": "menuitemcheckbox",
    "radio menu item": "menuitemradio", "page tab": "tab", "page tab list": "tablist",
    "list item": "listitem", "tree item": "treeitem", "table cell": "cell", "label": "text",
    "static": "text", "spin button": "spinbutton", "progress bar": "progressbar",
    "tool bar": "toolbar", "status bar": "status", "icon": "image", "terminal": "textbox",
}  # fmt: skip
_LAYOUT = frozenset({"filler", "panel", "separator", "scroll pane", "split pane", "redundant object",
                     "viewport", "scroll bar", "unknown", "window", "frame", "layered pane"})  # fmt: skip
_CHECKABLE = frozenset({"check box", "radio button", "check menu item", "radio menu item"})


class AccessibilityError(Exception):
    """The accessibility bus is not there or does not answer; the message names the step."""


class _Node(NamedTuple):
    """An object of a program: its name on the bus and its path."""

    bus: str
    path: str


class Tree:
    """Reads the desktop's tree; keeps one connection, opened again after an error. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: DBusConnection | None = None

    def elements(self, *, limit: int = LIMIT, pid: int | None = None) -> list[Element]:
        """Return what is shown and has a name or a value, window by window, at most `limit`.

        With `pid` only of that program: its window that has the input, or where a menu has it, all
        its windows. Raises AccessibilityError.
        """
        with self._lock:
            try:
                return self._read(min(limit, LIMIT), pid)
            except (OSError, EOFError, KeyError, RuntimeError, ValueError, TypeError) as error:
                if self._connection is not None:
                    self._connection.close()
                    self._connection = None
                raise AccessibilityError(
                    f"no answer on the accessibility bus: {error!r}"
                ) from error

    def _read(self, limit: int, pid: int | None) -> list[Element]:
        deadline = time.monotonic() + _SECONDS
        bus = self._connection = self._connection or _connect(deadline)
        root = _Node(f"{_A11Y}Registry", "/org/a11y/atspi/accessible/root")
        programs = _children(_ask(bus, [_call(root, "Accessible", "GetChildren")], deadline)[0])
        if pid is not None:
            asked = [_process(program) for program in programs]
            pids = [answer[0] if answer else 0 for answer in _ask(bus, asked, deadline)]
            programs = [p for p, number in zip(programs, pids, strict=True) if number == pid]
        asked = [_call(program, "Accessible", "GetChildren") for program in programs]
        windows = [w for answer in _ask(bus, asked, deadline) for w in _children(answer)]
        states = [_states(a) for a in _ask(bus, [_state(window) for window in windows], deadline)]
        shown = [(w, s) for w, s in zip(windows, states, strict=True) if _SHOWING in s]
        active = [(window, state) for window, state in shown if _ACTIVE in state]
        found: list[Element] = []
        for window, _ in (active or shown) if pid is not None else shown:
            found += _walk(bus, window, limit - len(found), deadline)
        return found[:limit]


def _connect(deadline: float) -> DBusConnection:
    """Return a connection to the accessibility bus, which the session bus starts if need be."""
    if "DBUS_SESSION_BUS_ADDRESS" not in os.environ:
        raise AccessibilityError("this desktop has no session bus")
    with open_dbus_connection("SESSION") as session:
        broker = DBusAddress("/org/a11y/bus", bus_name="org.a11y.Bus", interface="org.a11y.Bus")
        left = max(0.1, deadline - time.monotonic())
        answer = session.send_and_get_reply(new_method_call(broker, "GetAddress"), timeout=left)
    if answer.header.message_type is not MessageType.method_return:
        raise AccessibilityError("at-spi2-core is not installed: apt-get install at-spi2-core")
    return open_dbus_connection(str(answer.body[0]))


def _walk(bus: DBusConnection, window: _Node, limit: int, deadline: float) -> list[Element]:
    """Return the elements below `window`, in the order of the screen's levels: breadth first."""
    found: list[Element] = []
    level, seen = [window], {window}
    for _ in range(_DEPTH):
        if not level or len(found) >= limit or time.monotonic() > deadline:
            break
        states = [_states(answer) for answer in _ask(bus, [_state(n) for n in level], deadline)]
        shown = [(n, s) for n, s in zip(level, states, strict=True) if _SHOWING in s]
        found += _described(bus, shown, deadline)
        asked = [_call(node, "Accessible", "GetChildren") for node, _ in shown]
        level = []
        for answer in _ask(bus, asked, deadline):
            for child in _children(answer):
                if child not in seen and len(seen) < LIMIT * 2:
                    seen.add(child)
                    level.append(child)
    return found


def _described(
    bus: DBusConnection, shown: Sequence[tuple[_Node, frozenset[int]]], deadline: float
) -> list[Element]:
    questions = []
    for node, _ in shown:
        address = DBusAddress(node.path, bus_name=node.bus, interface=f"{_A11Y}Accessible")
        questions += [
            _call(node, "Accessible", "GetRoleName"),
            Properties(address).get("Name"),
            _call(node, "Component", "GetExtents", "u", (0,)),
            _call(node, "Text", "GetText", "ii", (0, _TEXT)),
        ]
    answers = _ask(bus, questions, deadline)
    found = []
    for index, (_, state) in enumerate(shown):
        role, name, extents, text = answers[4 * index : 4 * index + 4]
        element = _element(_text(role), _text(name), extents, _text(text), state)
        if element is not None:
            found.append(element)
    return found


def _element(
    role: str, name: str, extents: Any, text: str, state: frozenset[int]
) -> Element | None:
    if not extents or role in _LAYOUT:
        return None
    left, top, width, height = (int(number) for number in extents[0])
    if width <= 0 or height <= 0 or not (-32768 < left < 32768 and -32768 < top < 32768):
        return None
    value = "" if role == "password text" else text if _EDITABLE in state else ""
    if role in _CHECKABLE:
        value = "on" if _CHECKED in state else "off"
    name = name or (text if _EDITABLE not in state and role != "password text" else "")
    if not name and not value and _EDITABLE not in state:
        return None
    return Element(
        role=_ROLES.get(role, role)[:60],
        name=name.strip()[:_TEXT],
        box=(left, top, width, height),
        value=value[:_TEXT],
        focused=_FOCUSED in state,
    )


# -- the bus -------------------------------------------------------------------------------


def _call(node: _Node, interface: str, method: str, signature: str = "", body: Any = ()) -> Any:
    address = DBusAddress(node.path, bus_name=node.bus, interface=_A11Y + interface)
    return new_method_call(address, method, signature or None, body)


def _process(node: _Node) -> Any:
    broker = DBusAddress(
        "/org/freedesktop/DBus", bus_name="org.freedesktop.DBus", interface="org.freedesktop.DBus"
    )
    return new_method_call(broker, "GetConnectionUnixProcessID", "s", (node.bus,))


def _state(node: _Node) -> Any:
    return _call(node, "Accessible", "GetState")


def _ask(bus: DBusConnection, messages: Sequence[Any], deadline: float) -> list[Any]:
    """Return the body of each answer, None for a refusal or one that did not come in time."""
    bodies: dict[int, Any] = {}
    waiting = set()
    for message in messages:
        serial = next(bus.outgoing_serial)
        waiting.add(serial)
        bodies[serial] = None
        bus.send(message, serial=serial)
    while waiting:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        with suppress(TimeoutError):
            answer = bus.receive(timeout=left)
            serial = answer.header.fields.get(HeaderFields.reply_serial, 0)
            if serial in waiting:
                waiting.discard(serial)
                if answer.header.message_type is MessageType.method_return:
                    bodies[serial] = answer.body
    return list(bodies.values())


def _children(body: Any) -> list[_Node]:
    if not body:
        return []
    return [_Node(str(bus), str(path)) for bus, path in body[0][:_CHILDREN]]


def _states(body: Any) -> frozenset[int]:
    """Return the bits of a state set: two words of 32."""
    if not body:
        return frozenset()
    words = body[0]
    return frozenset(n for n in range(64) if len(words) > n // 32 and words[n // 32] >> n % 32 & 1)


def _text(body: Any) -> str:
    """Return the text of an answer: of a method's, or of a property's, which comes as a variant."""
    if not body:
        return ""
    value = body[0][1] if isinstance(body[0], tuple) else body[0]
    return str(value)[:_TEXT] if isinstance(value, str) else ""
