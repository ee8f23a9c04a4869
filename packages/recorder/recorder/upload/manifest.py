"""`upload/manifest.json`: exactly the bytes that leave, and nothing beside them."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recorder.spool import Folder

_SHA256 = re.compile(r"[0-9a-f]{64}")
_BLOCK = 1 << 20


class UploadError(Exception):
    """A recording can't be uploaded; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file of `upload/`; `path` is relative to it."""

    path: Path
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """`said` is `manifest.json` as it stands, `recording` is `recording.json`."""

    said: dict[str, Any]
    recording: dict[str, Any]
    confirmed_at: float
    parts: tuple[Part, ...]

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)


def confirmed(folder: Folder) -> Manifest:
    """Read what was confirmed and check every byte of it; raises UploadError.

    What was changed after the confirmation is not sent.
    """
    root = folder.upload
    if not (root / "manifest.json").exists():
        raise UploadError(f"{folder.path.name}: not reviewed yet: `tandem-recorder review`")
    said, recording = _read(root / "manifest.json"), _read(root / "recording.json")
    try:
        confirmed_at = float(recording["review"]["confirmed_at"])
        listed = [(str(f["path"]), str(f["sha256"]), int(f["bytes"])) for f in said["files"]]
    except (KeyError, TypeError, ValueError):
        raise UploadError(
            f"{folder.path.name}: not confirmed yet: `tandem-recorder review`"
        ) from None
    parts = []
    for name, sha256, size in listed:
        path = root / name
        if not _SHA256.fullmatch(sha256) or root.resolve() not in path.resolve().parents:
            raise UploadError(f"{root / 'manifest.json'} names {name!r}, which is no file of it")
        if not path.is_file() or path.stat().st_size != size or _sha256(path) != sha256:
            raise UploadError(f"{path} is not what was confirmed; review it again")
        parts.append(Part(path, sha256, size))
    return Manifest(said, recording, confirmed_at, tuple(parts))


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UploadError(f"{path}: {error}") from None
    if not isinstance(found, dict):
        raise UploadError(f"{path}: no object")
    return found


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as data:
        while block := data.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
