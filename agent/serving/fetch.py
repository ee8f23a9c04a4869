"""Bring a checkpoint's files to this machine."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from agent.serving.base import cache_folder
from agent.serving.manifest import CheckpointError
from blobs import BlobError, open_store


def fetch(uri: str) -> Path:
    """Return the folder of a checkpoint: a path and file:// are used in place, s3:// is copied.

    A copy is made once, kept in the model cache under the hash of its URI, and appears whole or
    not at all. STORAGE_URL says where S3 is and with which keys. Raises CheckpointError.
    """
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        folder = Path(parts.path)
        if not folder.is_dir():
            raise CheckpointError(f"there is no folder {folder}")
        return folder
    if parts.scheme != "s3":
        raise CheckpointError(f"{uri}: only a folder, file:// and s3:// can be fetched")
    kept = cache_folder() / "fetched" / hashlib.sha256(uri.encode()).hexdigest()[:32]
    if kept.exists():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    with (kept.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            for left in kept.parent.glob(".fetching-*"):  # of one that was killed under the lock
                shutil.rmtree(left, ignore_errors=True)
            unfinished = Path(tempfile.mkdtemp(prefix=".fetching-", dir=kept.parent))
            try:
                _download(uri, unfinished)
                unfinished.rename(kept)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
    return kept


def _download(uri: str, folder: Path) -> None:
    address = os.environ.get("STORAGE_URL")
    if not address:
        raise CheckpointError(f"{uri}: STORAGE_URL is not set, so nothing can be fetched from S3")
    try:
        open_store(address).get_folder(uri, folder)
    except BlobError as error:
        raise CheckpointError(f"{uri} can't be fetched: {error}") from error
