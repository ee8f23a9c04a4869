"""Made tasks on disk: JSON lines, one task each, checked when they are read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

OWN = Path(__file__).with_name("tasks")


class BadSpec(ValueError):
    """A line is no task; the message names the file, the line and the field."""


def by_name(folders: Iterable[Path], kind: str, fields: dict[str, type]) -> Mapping[str, Any]:
    """Return the tasks of all folders by their names, read anew only when a file has changed."""
    files = [path for folder in folders for path in sorted(folder.glob(f"{kind}-*.jsonl"))]
    stamp = tuple((str(path), path.stat().st_mtime_ns) for path in files)
    return _by_name(stamp, kind, tuple(fields.items()))


@lru_cache(maxsize=16)
def _by_name(
    stamp: tuple[tuple[str, int], ...], kind: str, fields: tuple[tuple[str, type], ...]
) -> Mapping[str, Any]:
    return {
        record["name"]: record for path, _ in stamp for record in read(Path(path), dict(fields))
    }


def read(path: Path, fields: dict[str, type]) -> Iterator[dict[str, Any]]:
    """Yield the tasks of one file; `fields` are those that each must have. Raises BadSpec."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip():
            yield _checked(line, f"{path.name}, line {number}", fields)


def _checked(line: str, where: str, fields: dict[str, type]) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise BadSpec(f"{where}: not JSON: {error}") from error
    if not isinstance(record, dict):
        raise BadSpec(f"{where}: a task is an object")
    for name, wanted in fields.items():
        if not isinstance(record.get(name), wanted):
            raise BadSpec(f"{where}: {name}: must be {wanted.__name__}")
    return record


def write(path: Path, records: list[dict[str, Any]]) -> None:
    """Write the tasks, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    lines = [json.dumps(record, ensure_ascii=False, sort_keys=True) + "\n" for record in records]
    part.write_text("".join(lines), encoding="utf-8")
    part.replace(path)
