"""The folder of one recording, `RECORDINGS/<id>/`, and what its `recording.json` says.

The id is random: no name of a computer, a person or a network card is in it or anywhere beside it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from trajectory.recording import FORMAT

Kind = Literal["demonstration", "exploration"]
Box = tuple[int, int, int, int]
_ID = re.compile(r"[0-9a-f]{32}")


class SpoolError(Exception):
    """A recording on disk can't be read or written; the message names the file."""


@dataclass(frozen=True, slots=True)
class Task:
    """What the person was asked to do; `id` is "" where they chose it themselves."""

    id: str
    title: str
    instruction: str


@dataclass(frozen=True, slots=True)
class Consent:
    """Which text the person agreed to, and when, in seconds since the epoch."""

    version: str
    accepted_at: float


@dataclass(frozen=True, slots=True)
class Screen:
    """The virtual screen in pixels; a monitor is (left, top, width, height)."""

    width: int
    height: int
    monitors: tuple[Box, ...]
    scale: float


@dataclass(frozen=True, slots=True)
class Head:
    """`recording.json`: `wall_start` is the wall clock at t = 0, in seconds since the epoch."""

    id: str
    kind: Kind
    task: Task
    consent: Consent
    platform: str
    screen: Screen
    wall_start: float
    recorder_version: str

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, **asdict(self)}, ensure_ascii=False, indent=1)


def new_id() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True)
class Folder:
    """Where a recording lies; nothing is read or made before it is asked for."""

    path: Path

    @property
    def events(self) -> Path:
        return self.path / "events.jsonl"

    @property
    def frames(self) -> Path:
        return self.path / "frames"

    @property
    def audio(self) -> Path:
        return self.path / "audio"

    @property
    def upload(self) -> Path:
        """What leaves the computer, once its person has confirmed it."""
        return self.path / "upload"

    def head(self) -> Head:
        """Return what `recording.json` says; raises SpoolError."""
        path = self.path / "recording.json"
        try:
            values = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise SpoolError(f"{path}: {error}") from None
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise SpoolError(f"{path}: not of the format {FORMAT}")
        try:
            return _head(values)
        except (KeyError, TypeError, ValueError) as error:
            raise SpoolError(f"{path}: {error!r}") from None

    @staticmethod
    def make(root: Path, head: Head) -> Folder:
        """Make the folder of a new recording, for its owner alone; raises SpoolError."""
        folder = Folder(root / head.id)
        try:
            root.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder.path.mkdir(mode=0o700)
            folder.frames.mkdir()
            folder.audio.mkdir()
            write_durably(folder.path / "recording.json", head.to_json().encode())
        except OSError as error:
            raise SpoolError(f"no recording can be made: {error}") from error
        return folder

    @staticmethod
    def find(root: Path, name: str) -> Folder:
        """Return the one recording whose id begins with `name`; raises SpoolError."""
        found = [folder for folder in Folder.all(root) if folder.path.name.startswith(name)]
        if len(found) != 1:
            raise SpoolError(f"{len(found)} recordings begin with {name!r}: see `list`")
        return found[0]

    @staticmethod
    def all(root: Path) -> list[Folder]:
        """Return the recordings below `root`, in the order of their ids."""
        if not root.is_dir():
            return []
        return [Folder(p) for p in sorted(root.iterdir()) if _ID.fullmatch(p.name)]

    def delete(self) -> None:
        """Remove the recording and all that was made of it; raises SpoolError."""
        try:
            shutil.rmtree(self.path)
        except OSError as error:
            raise SpoolError(f"{self.path} could not be removed whole: {error}") from error


def write_durably(path: Path, data: bytes) -> None:
    """Write a file that is there whole or not at all, even after a power cut; raises OSError."""
    draft = path.with_name(f".{path.name}")
    try:
        with draft.open("wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def _head(values: Mapping[str, Any]) -> Head:
    screen = values["screen"]
    if values["kind"] not in ("demonstration", "exploration"):
        raise ValueError(f"kind {values['kind']!r}")
    return Head(
        id=str(values["id"]),
        kind=values["kind"],
        task=Task(**values["task"]),
        consent=Consent(**values["consent"]),
        platform=str(values["platform"]),
        screen=Screen(
            width=int(screen["width"]),
            height=int(screen["height"]),
            monitors=tuple((int(a), int(b), int(c), int(d)) for a, b, c, d in screen["monitors"]),
            scale=float(screen["scale"]),
        ),
        wall_start=float(values["wall_start"]),
        recorder_version=str(values["recorder_version"]),
    )
