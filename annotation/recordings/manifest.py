"""What a recorder announces before it sends anything: read, checked against the limits. Pure."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from annotation.recordings.errors import BadManifest, TooLarge
from trajectory.recording import FORMAT

FILES = 100_000
FILE_BYTES = 1 << 30
RECORDING_BYTES = 8 << 30
ABOUT_CHARACTERS = 20_000  # of recording.json
OURS = ("seconds", "drift_s", "sounds", "to_delete")  # what is noted beside it here
LAST_START = 1e11  # seconds since the epoch: three thousand years from now
NEEDED = ("recording.json", "events.jsonl", "steps.jsonl")
PATH = re.compile(
    r"(recording\.json|(events|steps|words|redactions)\.jsonl"
    r"|frames/(?P<frame>[0-9a-f]{64})\.png|audio/[A-Za-z0-9_-]{1,80}\.flac)"
)
NAME = re.compile(r"[0-9a-f]{32}")
SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class File:
    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """One recording as announced; `sha256` names the whole of it."""

    name: str
    kind: str
    task: str
    title: str
    instruction: str
    consent: str
    about: Mapping[str, Any]
    confirmed_at: datetime
    files: tuple[File, ...]
    sha256: str

    @property
    def bytes(self) -> int:
        return sum({one.sha256: one.bytes for one in self.files}.values())


def read(body: Mapping[str, Any]) -> Manifest:
    """Return the manifest in a request's body; raises BadManifest naming the field, TooLarge."""
    name = body.get("id")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise _bad("id", "must be 32 hexadecimal digits, made at random")
    if body.get("format") != FORMAT:
        raise _bad(
            "format", f"is {body.get('format')!r}, this server reads {FORMAT}: update one of them"
        )
    about = body.get("recording")
    if not isinstance(about, dict) or about.get("id") != name or about.get("format") != FORMAT:
        raise _bad("recording", "must be recording.json of the same id and format")
    if len(json.dumps(about)) > ABOUT_CHARACTERS:
        raise _bad("recording", f"is longer than {ABOUT_CHARACTERS} characters")
    if given := sorted(set(OURS) & set(about)):
        raise _bad("recording", f"must not have {given[0]}: the server notes that itself")
    start = about.get("wall_start", 0.0)
    if not isinstance(start, (int, float)) or not 0 <= start < LAST_START:
        raise _bad("recording.wall_start", "must be seconds since the epoch")
    kind = about.get("kind")
    if kind not in ("demonstration", "exploration"):
        raise _bad("recording.kind", "must be demonstration or exploration")
    task = _object(about, "task")
    consent = _object(about, "consent")
    files = _files(body.get("files"))
    listed = sorted((one.path, one.sha256, one.bytes) for one in files)
    whole = json.dumps([name, about, listed], sort_keys=True)
    return Manifest(
        name=name,
        kind=kind,
        task=_text(task, "id", 200),
        title=_text(task, "title", 200),
        instruction=_text(task, "instruction", 4000),
        consent=_text(consent, "version", 32),
        about=about,
        confirmed_at=_time(body.get("confirmed_at")),
        files=files,
        sha256=hashlib.sha256(whole.encode()).hexdigest(),
    )


def _files(records: object) -> tuple[File, ...]:
    if not isinstance(records, list) or not records:
        raise _bad("files", "must be a list of files")
    if len(records) > FILES:
        raise TooLarge("too_many_files", f"{len(records)} files; a recording has at most {FILES}")
    files = tuple(_file(at, record) for at, record in enumerate(records))
    twice = [path for path, count in Counter(one.path for one in files).items() if count > 1]
    if twice:
        raise _bad("files", f"{twice[0]} is listed twice")
    sizes: dict[str, int] = {}
    for one in files:
        if sizes.setdefault(one.sha256, one.bytes) != one.bytes:
            raise _bad("files", f"{one.path}: another file of the same sha256 has another size")
    if missing := [path for path in NEEDED if path not in {one.path for one in files}]:
        raise _bad("files", f"{missing[0]} is missing: reduce and review the recording first")
    total = sum(sizes.values())
    if total > RECORDING_BYTES:
        raise TooLarge(
            "recording_too_large",
            f"{total} bytes; a recording has at most {RECORDING_BYTES}: trim it, or record in parts",
        )
    return files


def _file(at: int, record: object) -> File:
    where = f"files[{at}]"
    if not isinstance(record, dict):
        raise _bad(where, "must be an object")
    path, sha256, size = record.get("path"), record.get("sha256"), record.get("bytes")
    found = PATH.fullmatch(path) if isinstance(path, str) else None
    if found is None:
        raise _bad(where, f"{str(path)[:80]!r} is no file of a recording")
    if not isinstance(sha256, str) or not SHA256.fullmatch(sha256):
        raise _bad(where, "sha256 must be 64 hexadecimal digits")
    if found["frame"] and found["frame"] != sha256:
        raise _bad(where, "a frame is called by its sha256")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise _bad(where, "bytes must be a whole number")
    if size > FILE_BYTES:
        raise TooLarge(
            "file_too_large", f"{path} has {size} bytes; a file has at most {FILE_BYTES}", file=path
        )
    return File(str(path), sha256, size)


def _object(about: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = about.get(name)
    if not isinstance(value, dict):
        raise _bad(f"recording.{name}", "must be an object")
    return value


def _text(record: Mapping[str, Any], name: str, limit: int) -> str:
    value = record.get(name, "")
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or len(value) > limit or "\0" in value:
        raise _bad(name, f"must be text of at most {limit} characters")
    return value


def _time(value: object) -> datetime:
    """Return when the person confirmed: seconds since the epoch, or ISO 8601 with its offset."""
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str) and (when := datetime.fromisoformat(value)).tzinfo:
            return when
    except (ValueError, OverflowError, OSError):
        pass
    raise _bad(
        "confirmed_at", "must say when its person confirmed the upload: nothing is taken without"
    )


def _bad(field: str, why: str) -> BadManifest:
    return BadManifest("bad_manifest", f"{field}: {why}", field=field)
