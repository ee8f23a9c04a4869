"""One sha256 for a folder of weights: what a critic names its actor by."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path


def files_of(folder: Path) -> dict[str, str]:
    """Return every file's path within `folder` and its sha256."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with open(path, "rb") as file:
                found[str(path.relative_to(folder))] = hashlib.file_digest(
                    file, "sha256"
                ).hexdigest()
    return found


def fingerprint(files: Mapping[str, str]) -> str:
    """Return one sha256 for a folder: of the sorted lines `sha256  path`."""
    lines = "".join(f"{sha}  {path}\n" for path, sha in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()
