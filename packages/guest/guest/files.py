"""Files of the desktop's user: nothing outside the home folder is read or written."""

from __future__ import annotations

import os
from pathlib import Path

from guest.errors import ActionFailed, NotFound

MAX_BYTES = 32 * 1024 * 1024


def _inside_home(path: str) -> Path:
    home = Path.home().resolve()
    whole = (home / path.removeprefix("~/")).resolve()
    if not whole.is_relative_to(home):
        raise ActionFailed(f"{path} is outside the home folder")
    return whole


def read(path: str) -> bytes:
    """Return a file's bytes; raises NotFound, ActionFailed (outside the home, too big, a folder)."""
    whole = _inside_home(path)
    try:
        with whole.open("rb") as file:
            if os.fstat(file.fileno()).st_size > MAX_BYTES:
                raise ActionFailed(f"{path} is bigger than {MAX_BYTES} bytes")
            return file.read(MAX_BYTES)
    except FileNotFoundError:
        raise NotFound(f"no file {path}") from None
    except OSError as error:
        raise ActionFailed(f"can't read {path}: {error.strerror}") from error


def write(path: str, data: bytes) -> None:
    """Write a file, whole or not at all, with the folders above it; raises ActionFailed."""
    whole = _inside_home(path)
    try:
        whole.parent.mkdir(parents=True, exist_ok=True)
        part = whole.with_name(f".{whole.name}.part")
        part.write_bytes(data)
        part.replace(whole)
    except OSError as error:
        raise ActionFailed(f"can't write {path}: {error.strerror}") from error
