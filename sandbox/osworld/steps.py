"""The steps of `config[]` and `postconfig[]`: what brings a computer to a state."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from sandbox.families.protocol import SetupFailed
from sandbox.osworld.getters import Place, words
from sandbox.provider import ActionFailed
from trajectory import Navigate

MAX_SLEEP_S = 60.0
OPENERS = {
    "txt": "mousepad", "md": "mousepad", "csv": "mousepad", "json": "mousepad", "py": "mousepad",
    "html": "browser", "pdf": "browser", "png": "browser", "jpg": "browser",
}  # fmt: skip
"""What shows a file here; OSWorld asks the desktop environment, which ours has none of."""
PROGRAMS = {"google-chrome": "browser", "chromium": "browser", "chromium-browser": "browser"}

StepDoer: TypeAlias = Callable[[Place, Mapping[str, Any]], None]


def run(place: Place, steps: Sequence[Mapping[str, Any]]) -> None:
    """Do the steps in order; raises SetupFailed naming the step, or what the desktop raises."""
    for number, step in enumerate(steps, start=1):
        kind = str(step.get("type"))
        if kind not in STEPS:
            raise SetupFailed(f"step {number}: there is no step {kind!r} here")
        try:
            STEPS[kind](place, step.get("parameters", {}))
        except (ActionFailed, KeyError, TypeError, ValueError) as error:
            raise SetupFailed(f"step {number} ({kind}): {error}") from error
        except SetupFailed as error:
            raise SetupFailed(f"step {number} ({kind}): {error}") from error


def _download(place: Place, parameters: Mapping[str, Any]) -> None:
    """Put files from the assets where the task wants them; nothing is fetched from a network."""
    for file in parameters["files"]:
        place.desktop.write_file(
            str(file["path"]), place.assets.read(str(file["url"])), epoch=place.epoch
        )


def _execute(place: Place, parameters: Mapping[str, Any]) -> None:
    """Run a command to its end; what it returns does not matter, as in OSWorld."""
    place.run(parameters["command"])


def _launch(place: Place, parameters: Mapping[str, Any]) -> None:
    """Start a program and leave it; Chromium is ours, with its own switches."""
    command = parameters["command"]
    argv = shlex.split(command) if isinstance(command, str) else words(command)
    if (program := PROGRAMS.get(argv[0])) is not None:
        argv = [program, *(a for a in argv[1:] if not a.startswith("--remote-debugging"))]
    if argv[0] in ("socat",):
        return  # OSWorld's bridge to the browser's port; ours needs none
    place.desktop.launch(argv, epoch=place.epoch, action_id=place.name(argv))
    place.desktop.settle(quiet_ms=300, max_ms=8000)


def _open(place: Place, parameters: Mapping[str, Any]) -> None:
    """Show a file in the program that opens its kind."""
    path = str(parameters["path"])
    program = OPENERS.get(path.rpartition(".")[2].lower())
    argv = ["pcmanfm", path] if program is None else [program, path]
    if program == "browser":
        argv[1] = path if "://" in path else f"file://{path}"
    place.desktop.launch(argv, epoch=place.epoch, action_id=place.name(argv))
    place.desktop.settle(quiet_ms=300, max_ms=8000)


def _sleep(place: Place, parameters: Mapping[str, Any]) -> None:
    time.sleep(min(float(parameters["seconds"]), MAX_SLEEP_S))


def _window(verb: str) -> StepDoer:
    def do(place: Place, parameters: Mapping[str, Any]) -> None:
        how = "--class" if parameters.get("by_class") else "--name"
        name = shlex.quote(str(parameters["window_name"]))
        found, code = place.run(f"xdotool search --onlyvisible {how} {name} {verb} %1")
        if code and parameters.get("strict"):
            raise SetupFailed(f"no window {name}: {found.strip()}")

    return do


def _tabs(place: Place, parameters: Mapping[str, Any]) -> None:
    """Open addresses in the browser, the last one in front."""
    for url in parameters["urls_to_open"]:
        action = Navigate(str(url))
        place.desktop.perform(action, epoch=place.epoch, action_id=place.name(f"tab {url}"))


def _folder(place: Place, parameters: Mapping[str, Any]) -> None:
    place.run(f"mkdir -p -- {shlex.quote(str(parameters['path']))}")


def _upload(place: Place, parameters: Mapping[str, Any]) -> None:
    """Write texts that the task itself carries ({"path", "text"}); our own tasks need no assets."""
    for file in parameters["files"]:
        if "text" not in file:
            raise SetupFailed("a file needs a text: files of the importing machine are not read")
        place.desktop.write_file(str(file["path"]), str(file["text"]).encode(), epoch=place.epoch)


STEPS: dict[str, StepDoer] = {
    "download": _download,
    "execute": _execute,
    "command": _execute,
    "launch": _launch,
    "open": _open,
    "sleep": _sleep,
    "activate_window": _window("windowactivate --sync"),
    "close_window": _window("windowclose"),
    "chrome_open_tabs": _tabs,
    "create_folder": _folder,
    "upload_file": _upload,
}

ACCOUNTS = ("googledrive", "login")
"""Steps that sign in somewhere: they need an account of yours and the network."""
