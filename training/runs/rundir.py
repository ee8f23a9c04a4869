"""The run directory: the whole interface between a trainer and whoever supervises it.

    config.yaml    what to do; written once, before the trainer starts
    data.jsonl     one row per line: {"id", "messages", "target", "images", "loss", "weight", "source"}
    stream.jsonl   episodes as they finish, for trainers that learn from them (training.data.stream_rows)
    metrics.jsonl  one line per optimiser step, appended
    tensorboard/   the same numbers as event files
    status.json    {"state", "step", "total_steps", "pid", "error", "checkpoint", "time"}
    checkpoints/   step-N/ folders; a folder under its final name is whole
    log.txt        what the trainer printed

Neither torch nor Django: the supervisor reads it without the one, the trainer without the other.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import yaml

from training.runs.tensorboard import Board

State = Literal["queued", "running", "succeeded", "cancelled", "failed"]
STATES: tuple[State, ...] = get_args(State)


class RunDirError(ValueError):
    """A run directory is not what it should be; the message names the file."""


@dataclass(frozen=True, slots=True)
class Status:
    """Where a trainer stands; `time` is seconds since the epoch of the last word from it."""

    state: State
    step: int = 0
    total_steps: int = 0
    pid: int = 0
    error: str = ""
    checkpoint: str = ""  # the newest whole one, as a path below the run directory
    time: float = 0.0


class RunDir:
    """One run on disk. Every write is whole or not there: readers may look at any moment."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._board = Board(self.path)

    @property
    def data(self) -> Path:
        return self.path / "data.jsonl"

    @property
    def log(self) -> Path:
        return self.path / "log.txt"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        config: Mapping[str, object],
        lines: Iterable[str] = (),
    ) -> RunDir:
        """Make a run directory from a configuration and the lines of data.jsonl.

        Once more with the same configuration is fine; another one is refused.
        """
        run = cls(path)
        body = yaml.safe_dump(dict(config), sort_keys=True, allow_unicode=True)
        if run._config.exists() and run._config.read_text(encoding="utf-8") != body:
            raise RunDirError(f"{run._config} holds another configuration: use a new directory")
        run.checkpoints.mkdir(parents=True, exist_ok=True)
        write_atomic(run.data, "".join(lines))
        write_atomic(run._config, body)
        if not status_path(run.path).exists():
            run.write_status(Status("queued"))
        return run

    # -- configuration and data ------------------------------------------------------------------

    @property
    def _config(self) -> Path:
        return self.path / "config.yaml"

    def config(self) -> dict[str, Any]:
        """Return the configuration; raises RunDirError if it is missing or broken."""
        try:
            record = yaml.safe_load(self._config.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise RunDirError(f"{self._config} is missing") from None
        except yaml.YAMLError as error:
            raise RunDirError(f"{self._config}: {error}") from error
        if not isinstance(record, dict):
            raise RunDirError(f"{self._config} must hold one value per name")
        return record

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows in order; raises RunDirError naming the line that can't be read."""
        if not self.data.exists():
            raise RunDirError(f"{self.data} is missing")
        with self.data.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise RunDirError(f"{self.data}:{number}: {error}") from error
                if not isinstance(row, dict) or not isinstance(row.get("id"), str):
                    raise RunDirError(f"{self.data}:{number}: a row is an object with a text id")
                yield row

    # -- status ----------------------------------------------------------------------------------

    def status(self) -> Status:
        """Return the newest status; "queued" where no trainer has said anything yet."""
        record = read_status(self.path)
        return Status("queued") if record is None else Status(**record)

    def write_status(self, status: Status) -> None:
        """Replace the status; its time is set here."""
        record = {**asdict(status), "time": time.time()}
        write_atomic(status_path(self.path), json.dumps(record) + "\n")

    # -- metrics ---------------------------------------------------------------------------------

    @property
    def _metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    def append_metrics(self, line: Mapping[str, float | int]) -> None:
        """Add one line, for TensorBoard too; it is on disk when this returns."""
        with self._metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(dict(line)) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._board.add(int(line["step"]), line)

    def cut_metrics(self, step: int) -> None:
        """Drop lines beyond `step`: a trainer resumed there will say them again."""
        if self._metrics.exists():
            # A line that a kill cut short is dropped too: it has no end.
            lines = self._metrics.read_text(encoding="utf-8").splitlines(keepends=True)
            whole = [line for line in lines if line.endswith("\n")]
            kept = [line for line in whole if int(json.loads(line)["step"]) <= step]
            write_atomic(self._metrics, "".join(kept))

    # -- checkpoints -----------------------------------------------------------------------------

    def steps(self) -> list[int]:
        """Return the steps of the whole checkpoints, oldest first."""
        return sorted(folders(self.checkpoints))

    def checkpoint(self, step: int) -> Path:
        return self.checkpoints / f"step-{step}"


def folders(parent: Path) -> dict[int, Path]:
    """Return the whole step-N folders of weights below `parent`, by N."""
    found = {}
    for folder in parent.glob("step-*"):
        number = folder.name.removeprefix("step-")
        if number.isdigit() and (folder / "tandem.json").exists():
            found[int(number)] = folder
    return found


def status_path(directory: str | Path) -> Path:
    """Return where a trainer says how it stands."""
    return Path(directory) / "status.json"


def read_status(directory: str | Path) -> dict[str, Any] | None:
    """Return the fields of a Status, None before a trainer said anything; raises RunDirError."""
    path = status_path(directory)
    if not path.exists():
        return None
    record = _read_object(path)
    if record.get("state") not in STATES:
        raise RunDirError(f"{path}: unknown state {record.get('state')!r}")
    return record


def write_atomic(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old or the new text, also after a power cut."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    with aside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)


def _read_object(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunDirError(f"{path} is missing") from None
    except ValueError as error:
        raise RunDirError(f"{path}: {error}") from error
    if not isinstance(record, dict):
        raise RunDirError(f"{path} must hold an object")
    return record
