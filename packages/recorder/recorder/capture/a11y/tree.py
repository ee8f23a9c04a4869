"""Finds widgets: at a point, with the focus, and the page that a browser shows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jeepney import DBusAddress, Properties

from recorder.capture.a11y.bus import (
    A11Y,
    ROOT,
    Bus,
    Node,
    call,
    children,
    name_of,
    process_of,
    states,
    text,
)

_ACTIVE, _EDITABLE, _FOCUSED, _SHOWING = 1, 7, 12, 25  # bits of AtspiStateType
_SCREEN = 0  # AtspiCoordType
_NULL = "/org/a11y/atspi/null"
_DEPTH, _NODES = 40, 600
_REFRESH_S = 1.0
_ROLES = {
    "push button": "button", "toggle button": "button", "entry": "textbox", "text": "textbox",
    "password text": "textbox", "check box": "checkbox", "radio button": "radio",
    "combo box": "combobox", "menu item": "menuitem", "check menu item": "menuitemcheckbox",
    "radio menu item": "menuitemradio", "page tab": "tab", "page tab list": "tablist",
    "list item": "listitem", "tree item": "treeitem", "table cell": "cell", "label": "text",
    "static": "text", "spin button": "spinbutton", "progress bar": "progressbar",
    "tool bar": "toolbar", "status bar": "status", "icon": "image",
}  # fmt: skip
_PLAIN = ("gtk", "gail", "qt")
_ADDRESS = ("DocURL", "URI")  # Firefox, Chromium
_DOCUMENTS = ("document web", "document frame")


class Widget(NamedTuple):
    """What a widget says of itself; `bounds` is (left, top, width, height) on the screen."""

    role: str
    name: str
    bounds: tuple[int, int, int, int]
    password: bool | None
    editable: bool = False
    node: Node | None = None


class Tree:
    """The widgets of all programs, read over one bus."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._pids: dict[str, int] = {}  # of programs on the bus, by their name there
        self._read = -_REFRESH_S
        self._document: tuple[Node, Node] | None = None  # a window, and the page that it shows

    def pid(self, program: str, deadline: float) -> int:
        """Return the process of a name on the bus; 0 if nobody knows."""
        if program not in self._pids:
            answer = self._bus.ask([process_of(Node(program, ""))], deadline)[0]
            if not answer:
                return 0  # asked again: it may have been told too late
            self._pids[program] = int(answer[0])
        return self._pids[program]

    def program(self, pid: int, deadline: float) -> Node | None:
        """Return a process's root widget; None for a program that tells nothing."""
        found = self._known(pid)
        if found is None and pid and time.monotonic() - self._read > _REFRESH_S:
            self._read = time.monotonic()
            programs = children(
                self._bus.ask([call(ROOT, "Accessible", "GetChildren")], deadline)[0]
            )
            asked = self._bus.ask([process_of(program) for program in programs], deadline)
            self._pids = {
                p.bus: int(answer[0]) for p, answer in zip(programs, asked, strict=True) if answer
            }
            found = self._known(pid)
        return found

    def at(self, pid: int, x: int, y: int, deadline: float) -> Widget | None:
        """Return the innermost widget of a process at a point; None if nothing is told."""
        program = self.program(pid, deadline)
        for window in self._windows(program, deadline) if program else ():
            node = window
            for _ in range(_DEPTH):
                answer = self._bus.ask(
                    [call(node, "Component", "GetAccessibleAtPoint", "iiu", (x, y, _SCREEN))],
                    deadline,
                )[0]
                below = Node(*map(str, answer[0])) if answer else node
                if below.path == _NULL or below == node:
                    break
                node = below
            if node != window:
                return self.describe(node, deadline)
        return None

    def focused(self, pid: int, deadline: float) -> Widget | None:
        """Look for a process's widget with the focus; None if there is none among the first 600."""
        program = self.program(pid, deadline)
        for nodes in self._levels(self._windows(program, deadline) if program else (), deadline):
            for node, state in nodes:
                if _FOCUSED in state:
                    return self.describe(node, deadline)
        return None

    def page(self, pid: int, deadline: float) -> str:
        """Return the address of the page in a browser's window in front; "" if nothing is told."""
        program = self.program(pid, deadline)
        windows = self._windows(program, deadline)[:1] if program else []
        if self._document is not None and [self._document[0]] == windows:
            known = self._address(self._document[1], deadline)
            if known:
                return known
        self._document = None
        for nodes in self._levels(windows, deadline):
            roles = [call(node, "Accessible", "GetRoleName") for node, _ in nodes]
            for (node, _), role in zip(nodes, self._bus.ask(roles, deadline), strict=True):
                if text(role) in _DOCUMENTS:
                    self._document = (windows[0], node)
                    return self._address(node, deadline)
        return ""

    def _address(self, document: Node, deadline: float) -> str:
        """Return the address of a document that is shown; "" for one in another tab."""
        questions = [call(document, "Document", "GetAttributeValue", "s", (n,)) for n in _ADDRESS]
        state, *urls = self._bus.ask(
            [call(document, "Accessible", "GetState"), *questions], deadline
        )
        if _SHOWING not in states(state):
            return ""
        return next(filter(None, (text(url, 2000) for url in urls)), "")

    def describe(self, node: Node, deadline: float) -> Widget | None:
        role, name, extents, state = self._bus.ask(
            [
                call(node, "Accessible", "GetRoleName"),
                name_of(node),
                call(node, "Component", "GetExtents", "u", (_SCREEN,)),
                call(node, "Accessible", "GetState"),
            ],
            deadline,
        )
        if not role:
            return None
        word = text(role)
        left, top, width, height = extents[0] if extents else (0, 0, 0, 0)
        bounds = (_pixel(left), _pixel(top), _pixel(width), _pixel(height))
        editable = _EDITABLE in states(state)
        secret = word == "password text" if word else None
        return Widget(_ROLES.get(word, word), text(name), bounds, secret, editable, node)

    def shows_preedit(self, program: str, deadline: float) -> bool:
        """Whether a program's texts hold what is still being composed; GTK's and Qt's do not."""
        root = DBusAddress(ROOT.path, bus_name=program, interface=f"{A11Y}Application")
        name = text(self._bus.ask([Properties(root).get("ToolkitName")], deadline)[0])
        return name.lower() not in _PLAIN

    def _known(self, pid: int) -> Node | None:
        for name, number in self._pids.items():
            if pid and number == pid:
                return Node(name, ROOT.path)
        return None

    def _windows(self, program: Node, deadline: float) -> list[Node]:
        """Return a program's windows on the screen, the active one first."""
        asked = self._bus.ask([call(program, "Accessible", "GetChildren")], deadline)
        windows = children(asked[0])
        if not windows:
            self._pids.pop(program.bus, None)  # it may have gone
        found = self._bus.ask([call(w, "Accessible", "GetState") for w in windows], deadline)
        shown = [(w, states(s)) for w, s in zip(windows, found, strict=True)]
        active = [w for w, s in shown if _ACTIVE in s]
        return active + [w for w, s in shown if _SHOWING in s and _ACTIVE not in s]

    def _levels(
        self, windows: Sequence[Node], deadline: float
    ) -> Iterator[list[tuple[Node, frozenset[int]]]]:
        """Yield the shown widgets of the first window, level by level."""
        level = list(windows[:1])
        seen = set(level)
        for _ in range(_DEPTH):
            asked = self._bus.ask([call(n, "Accessible", "GetState") for n in level], deadline)
            shown = [(n, states(s)) for n, s in zip(level, asked, strict=True)]
            shown = [(n, s) for n, s in shown if _SHOWING in s]
            if not shown or time.monotonic() > deadline:
                return
            yield shown
            below = self._bus.ask(
                [call(n, "Accessible", "GetChildren") for n, _ in shown], deadline
            )
            level = []
            for node in (child for answer in below for child in children(answer)):
                if node not in seen and len(seen) < _NODES:
                    seen.add(node)
                    level.append(node)


def _pixel(value: object) -> int:
    return max(-32768, min(32768, value)) if isinstance(value, int) else 0
