"""What of a task can't be done here, each reason by its kind; nothing is left out silently."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from sandbox.osworld.assets import Assets
from sandbox.osworld.getters import GETTERS
from sandbox.osworld.metrics import INFEASIBLE, METRICS
from sandbox.osworld.steps import ACCOUNTS, STEPS
from sandbox.osworld.task import OSWorldTask

Kind: TypeAlias = Literal[
    "system",
    "application",
    "account",
    "live web",
    "missing file",
    "setup step",
    "getter",
    "function",
]

PROGRAMS = {
    "libreoffice_calc": "soffice", "libreoffice_writer": "soffice", "libreoffice_impress": "soffice",
    "libreoffice": "soffice", "gimp": "gimp", "vlc": "vlc", "thunderbird": "thunderbird",
    "vs_code": "code", "vscode": "code", "chrome": "chromium", "chromium": "chromium",
    "image": "eog", "evince": "evince", "picard": "picard", "gnome-calculator": "gnome-calculator",
    "msedge": "msedge", "edge": "msedge",
}  # fmt: skip
"""The program behind an application's name; "os", "terminal" and the like need none."""


class Reason(NamedTuple):
    """Why a task can't run here: its kind, and what exactly is missing."""

    kind: Kind
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


def reasons(
    task: OSWorldTask,
    assets: Assets,
    *,
    installed: Callable[[str], object] = shutil.which,
) -> list[Reason]:
    """Return every reason why `task` can't run here, each once; [] if it can."""
    found: dict[Reason, None] = {}

    def add(kind: Kind, what: str) -> None:
        found.setdefault(Reason(kind, what))

    if task.system != "linux":
        add("system", "needs Windows")
    for app in task.apps:
        program = PROGRAMS.get(app.lower())
        if program is not None and not installed(program):
            add("application", f"{app} ({program} is not installed)")
    evaluator = task.evaluator
    for step in (*task.config, *(evaluator.get("postconfig") or [])):
        _step(step, assets, add)
    for name in _listed(evaluator.get("func")):
        if name != INFEASIBLE and name not in METRICS:
            add("function", str(name))
    for side in ("result", "expected"):
        for getter in _listed(evaluator.get(side)):
            _getter(getter, assets, add)
    return list(found)


def _step(step: Mapping[str, Any], assets: Assets, add: Callable[[Kind, str], None]) -> None:
    kind, parameters = str(step.get("type")), step.get("parameters", {})
    if kind in ACCOUNTS:
        add("account", kind)
    elif kind not in STEPS:
        add("setup step", kind)
    elif kind == "download":
        for file in parameters.get("files", []):
            if assets.find(str(file.get("url"))) is None:
                add("missing file", str(file.get("url")))
    elif kind == "chrome_open_tabs":
        for url in parameters.get("urls_to_open", []):
            if not _local(str(url)):
                add("live web", str(urlsplit(str(url)).hostname or url))
    if kind == "upload_file" and not all("text" in f for f in parameters.get("files", [])):
        add("setup step", "upload_file of a local file")


def _getter(getter: object, assets: Assets, add: Callable[[Kind, str], None]) -> None:
    if not isinstance(getter, Mapping):
        return
    kind = str(getter.get("type"))
    if kind not in GETTERS:
        add("getter", kind)
    elif kind == "cloud_file":
        for url in _listed(getter.get("path")):
            if assets.find(str(url)) is None:
                add("missing file", str(url))


def _local(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("file", "about", "chrome") or parts.hostname in (
        "localhost",
        "127.0.0.1",
    )


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def tally(found: Iterable[Iterable[Reason]]) -> Counter[str]:
    """Return how many tasks each kind of reason keeps out; a task counts once per kind."""
    return Counter(kind for reasons in found for kind in {reason.kind for reason in reasons})
