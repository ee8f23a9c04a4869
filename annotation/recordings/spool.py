"""Where the bytes of an upload wait until a file is whole: one file each below SPOOL_DIR.

How much of a file is here is how long it is; nothing else remembers it. Several web hosts have to
share the folder, or send one recorder to one of them.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import time
from datetime import timedelta
from pathlib import Path
from typing import IO

from django.conf import settings

from annotation.recordings.errors import NoRoom

BLOCK = 256 * 1024
SPARE = 512 << 20  # bytes of the disk that stay free


def path_of(recording: str, sha256: str) -> Path:
    return Path(settings.RECORDING_SPOOL) / recording / sha256


def length(recording: str, sha256: str) -> int:
    """Return how many bytes of a file are here."""
    try:
        return path_of(recording, sha256).stat().st_size
    except FileNotFoundError:
        return 0


def append(recording: str, sha256: str, *, offset: int, source: IO[bytes], limit: int) -> int:
    """Write what `source` gives after `offset`, at most `limit` bytes in all; returns the new length.

    The caller holds the file's row. Whole blocks that came before an error stay. Raises NoRoom.
    """
    path = path_of(recording, sha256)
    path.parent.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(path.parent).free < SPARE:
        raise NoRoom("no_room", "the server's disk is nearly full: try again later")
    with path.open("ab") as file:
        at = offset
        try:
            while at < limit and (block := source.read(min(BLOCK, limit - at))):
                file.write(block)
                at += len(block)
            file.flush()
            os.fsync(file.fileno())
        except OSError as error:
            file.truncate(offset)
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise NoRoom("no_room", "the server's disk is full: try again later") from error
            raise
    return at


def sha256_of(recording: str, sha256: str) -> str:
    """Return the sha256 of what is here, read block by block."""
    digest = hashlib.sha256()
    try:
        with path_of(recording, sha256).open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except FileNotFoundError:
        pass  # nothing of an empty file ever comes
    return digest.hexdigest()


def older_than(age: timedelta) -> list[str]:
    """Return the recordings of which something waits, and to which nothing was added for so long."""
    root, limit = Path(settings.RECORDING_SPOOL), time.time() - age.total_seconds()
    try:
        return [
            one.name for one in os.scandir(root) if one.is_dir() and one.stat().st_mtime < limit
        ]
    except FileNotFoundError:
        return []


def forget(recording: str, sha256: str = "") -> None:
    """Delete one file that waits, or all of a recording."""
    folder = Path(settings.RECORDING_SPOOL) / recording
    if sha256:
        # The folder stays: another file may just be on its way into it.
        (folder / sha256).unlink(missing_ok=True)
    else:
        shutil.rmtree(folder, ignore_errors=True)
