"""A recording becomes its redacted copy, `redacted/`: all that the review, and later the server, sees."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recorder.redact import (
    Denied,
    Detectors,
    Judge,
    RedactionError,
    Source,
    apply,
    detectors,
    judge_words,
    passwords,
)
from recorder.reduce import write_steps
from recorder.spool import Folder, events
from recorder.spool.reading import written
from trajectory.recording import Event

MAX_WORDS = 200_000


@dataclass(frozen=True, slots=True)
class Reviewable:
    """A recording with its redacted copy."""

    folder: Folder
    detectors: Detectors

    @property
    def path(self) -> Path:
        return self.folder.path / "redacted"

    def events(self) -> Iterator[Event]:
        """Yield the events of the copy, which were written in the order of their times."""
        return written(self.path / "events.jsonl")

    def lines(self, name: str) -> list[dict[str, Any]]:
        """Return the lines of `steps.jsonl`, `words.jsonl` or `redactions.jsonl`."""
        return read_lines(self.path / name)


def prepare(
    folder: Folder, denied: Path, found_by: Detectors | None = None, *, anew: bool = False
) -> Reviewable:
    """Redact a recording, once; `denied` is the list of windows that are never shown.

    Raises RedactionError where something that must judge it is missing, SpoolError where the
    recording can't be read, OSError where nothing can be written.
    """
    found_by = (found_by or detectors()).knowing(passwords(events(folder)))
    ready = Reviewable(folder, found_by)
    if ready.path.is_dir() and not anew:
        return ready
    head, words = folder.head(), read_lines(folder.path / "words.jsonl")
    judge = Judge(found_by, Denied.load(denied))
    for event in events(folder):
        judge.take(event)
    redactions = judge.close() + judge_words(words, found_by)
    source = Source(folder.path, lambda: events(folder), words, None)
    with Draft(ready.path) as draft:
        apply(source, redactions, found_by.clean, draft)
        write_steps(written(draft / "events.jsonl"), draft / "steps.jsonl", scale=head.screen.scale)
    return ready


class Draft:
    """A folder that is there whole or not at all: written beside `target`, then put in its place."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._path = target.with_name(f".{target.name}")
        self._old = target.with_name(f".{target.name}.old")

    def __enter__(self) -> Path:
        shutil.rmtree(self._path, ignore_errors=True)
        self._path.mkdir(mode=0o700)
        return self._path

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            shutil.rmtree(self._path, ignore_errors=True)
            return
        for path in self._path.rglob("*"):
            if path.is_file():
                with path.open("rb") as written_file:
                    os.fsync(written_file.fileno())
        shutil.rmtree(self._old, ignore_errors=True)
        if self._target.exists():
            self._target.rename(self._old)
        self._path.rename(self._target)
        shutil.rmtree(self._old, ignore_errors=True)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON lines; none where there is no file.

    Raises RedactionError for a file that is something else: what can't be read can't be judged.
    """
    try:
        # Only what JSON lines end with: a title may hold a line separator of Unicode.
        lines = path.read_text("utf-8").split("\n")[:MAX_WORDS]
        values = [json.loads(line) for line in lines if line.strip()]
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise RedactionError(f"{path} can't be read: {error}") from None
    if not all(isinstance(value, dict) for value in values):
        raise RedactionError(f"{path} is no list of objects")
    return values
