"""Where built images are kept: one folder per recipe and digest, whole or not at all."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path("~/.cache/tandem/images")
"""The user's cache, shared by all checkouts: an image costs minutes and gigabytes."""

Say = Callable[[str], None]


def folder() -> Path:
    """Return the cache folder; it may not exist yet."""
    return FOLDER.expanduser()


def digest(*parts: str | Path) -> str:
    """Return 16 hex digits that name a recipe; of a Path its name and all the files below count."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            total.update(part.encode() + b"\0")
            continue
        files = sorted(f for f in part.rglob("*") if f.is_file()) if part.is_dir() else [part]
        for file in files:
            if "__pycache__" not in file.parts:
                total.update(str(file.relative_to(part.parent)).encode() + b"\0")
                total.update(file.read_bytes() + b"\0")
    return total.hexdigest()[:16]


def place(name: str, recipe: str) -> Path:
    """Return the folder of image `name` built by `recipe` (a digest); it is there once it is built."""
    return folder() / f"{name}-{recipe}"


def build(target: Path, make: Callable[[Path], None]) -> Path:
    """Return `target`, made by `make(part)` if it is not there; other processes wait for it.

    What an interrupted build left is thrown away by the next one.
    """
    if target.is_dir():
        return target
    with _locked(target):
        if target.is_dir():
            return target
        part = target.with_name(f"{target.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        try:
            make(part)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        part.replace(target)
    return target


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
