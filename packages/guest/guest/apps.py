"""The programs of the desktop by the names that people and models call them."""

from __future__ import annotations

from dataclasses import dataclass

from guest import shell
from guest.errors import ActionFailed
from guest.windows import Windows


@dataclass(frozen=True, slots=True)
class App:
    """How to start a program, and the class of its windows in lower case."""

    argv: tuple[str, ...]
    window_class: str


_APPS = {
    "terminal": App(("xterm",), "xterm"),
    "files": App(("pcmanfm",), "pcmanfm"),
    "editor": App(("mousepad",), "mousepad"),
    "browser": App(("browser",), "chromium"),
}
_ALIASES = {
    "xterm": "terminal",
    "console": "terminal",
    "pcmanfm": "files",
    "file manager": "files",
    "mousepad": "editor",
    "text editor": "editor",
    "chromium": "browser",
    "chrome": "browser",
    "web browser": "browser",
}


def open_app(name: str, windows: Windows) -> None:
    """Raise the application called `name`, or start it; raises ActionFailed naming those known."""
    word = name.strip().lower()
    app = _APPS.get(_ALIASES.get(word, word))
    if app is None:
        raise ActionFailed(f"no application {name!r}; there are: {', '.join(_APPS)}")
    if not windows.raise_class(app.window_class):
        shell.launch(app.argv)
