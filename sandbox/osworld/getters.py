"""Where a result or an expectation comes from: a file, a command's output, a rule, the browser."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from sandbox.interpreter import guest_python
from sandbox.osworld.assets import Assets
from sandbox.provider import ActionFailed, Desktop

LIMIT_MS = 120_000


class Place(NamedTuple):
    """What a getter may ask: the computer under a lease's epoch, and the assets.

    `name(what)` gives the same action id for the same question, so that nothing runs twice.
    """

    desktop: Desktop
    epoch: int
    assets: Assets
    name: Callable[[object], str]

    def run(self, command: object, *, shell: bool = True) -> tuple[str, int | None]:
        """Run a command (a text, or words) and return (output, exit code)."""
        line = command if isinstance(command, str) else shlex.join(str(c) for c in words(command))
        done = self.desktop.shell(
            line, epoch=self.epoch, action_id=self.name(line), timeout_ms=LIMIT_MS
        )
        return done.output, done.exit_code


def words(command: object) -> list[str]:
    """Return a command's words; `python` is what this system calls python3."""
    found = [str(c) for c in command] if isinstance(command, list) else [str(command)]
    return ["python3", *found[1:]] if found[:1] == ["python"] else found


Getter: TypeAlias = Callable[[Place, Mapping[str, Any]], Any]


def _vm_file(place: Place, config: Mapping[str, Any]) -> Any:
    """Bytes of a file, None where it is missing; of several: a list of those that `gives` numbers."""
    paths = config["path"] if isinstance(config["path"], list) else [config["path"]]
    found: list[bytes | None] = []
    for path in paths:
        try:
            found.append(place.desktop.read_file(str(path)))
        except ActionFailed:
            found.append(None)
    return _given(found, config)


def _cloud_file(place: Place, config: Mapping[str, Any]) -> Any:
    urls = config["path"] if isinstance(config["path"], list) else [config["path"]]
    return _given([place.assets.read(str(url)) for url in urls], config)


def _given(found: Sequence[Any], config: Mapping[str, Any]) -> Any:
    if not config.get("multi"):
        return found[0]
    gives = config.get("gives") or [0]
    chosen = [found[int(n)] for n in gives]
    return chosen[0] if len(chosen) == 1 else chosen


def _command_line(place: Place, config: Mapping[str, Any]) -> str:
    return place.run(config["command"])[0]


def _command_error(place: Place, config: Mapping[str, Any]) -> str:
    command = config["command"]
    line = command if isinstance(command, str) else shlex.join(words(command))
    return place.run(f"({line}) 2>&1 >/dev/null")[0]


def _rule(place: Place, config: Mapping[str, Any]) -> Any:
    return config.get("rules", {})


def _list_directory(place: Place, config: Mapping[str, Any]) -> list[str]:
    """Names in a folder, without hidden ones; [] where there is none."""
    output, code = place.run(f"ls -1 -- {shlex.quote(str(config['path']))}")
    return output.splitlines() if code == 0 else []


def _folder_has_file(place: Place, config: Mapping[str, Any]) -> float:
    """1 if a folder holds a file: `folder_name` and `file_name`, or one `path`."""
    path = config.get("path") or f"{config.get('folder_name')}/{config.get('file_name')}"
    return float(place.run(f"test -e {shlex.quote(str(path))}")[1] == 0)


def _screen_size(place: Place, config: Mapping[str, Any]) -> dict[str, int]:
    return {"width": place.desktop.width, "height": place.desktop.height}


def _window_title(place: Place, config: Mapping[str, Any]) -> str:
    return place.run("xdotool getactivewindow getwindowname")[0].strip()


def _tabs(place: Place, config: Mapping[str, Any]) -> list[dict[str, str]]:
    """The browser's open pages as {"title", "url"}, the one in front first."""
    ask = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9222/json/list').read().decode())"
    output, _ = place.run(f"{guest_python(lambda line: place.run(line)[0])} -c {shlex.quote(ask)}")
    try:
        targets = json.loads(output)
    except ValueError:
        return []
    return [
        {"title": str(t.get("title", "")), "url": str(t.get("url", ""))}
        for t in targets
        if t.get("type") == "page"
    ]


def _active_tab(place: Place, config: Mapping[str, Any]) -> dict[str, str] | None:
    tabs = _tabs(place, config)
    return tabs[0] if tabs else None


def _page_info(place: Place, config: Mapping[str, Any]) -> Any:
    return place.desktop.evaluate("({title: document.title, url: location.href})")


GETTERS: dict[str, Getter] = {
    "vm_file": _vm_file,
    "cloud_file": _cloud_file,
    "vm_command_line": _command_line,
    "vm_command_error": _command_error,
    "rule": _rule,
    "list_directory": _list_directory,
    "vm_file_exists_in_vm_folder": _folder_has_file,
    "vm_screen_size": _screen_size,
    "vm_active_window_title": _window_title,
    "open_tabs_info": _tabs,
    "active_tab_info": _active_tab,
    "active_url_from_accessTree": _page_info,
    "page_info": _page_info,
}
