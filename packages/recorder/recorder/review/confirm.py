"""The confirmed recording, `upload/`: exactly the bytes that leave this computer."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recorder.redact import Redaction, Source, apply, judge_words, write_lines
from recorder.reduce import write_steps
from recorder.review.edits import Edits, redactions, words
from recorder.review.prepare import Draft, Reviewable
from recorder.spool import new_id
from recorder.spool.reading import written
from trajectory.recording import FORMAT


def confirm(ready: Reviewable, edits: Edits, on_pictures: Sequence[Redaction]) -> Path:
    """Write `upload/` from the redacted copy and its person's edits, and return it.

    `on_pictures` is what was found when the pictures were read (`Looking.redactions`). What the
    person wrote is judged like everything else. Raises RedactionError, SpoolError, OSError.
    """
    head = ready.folder.head()
    said = words(edits.made, ready.lines("words.jsonl"))
    removed = [
        *redactions(edits.made, ready.lines("steps.jsonl")),
        *judge_words(said, ready.detectors),
        *on_pictures,
    ]
    source = Source(ready.path, ready.events, said, (head.screen.width, head.screen.height))
    with Draft(ready.folder.upload) as draft:
        apply(source, removed, ready.detectors.clean, draft)
        write_steps(written(draft / "events.jsonl"), draft / "steps.jsonl", scale=head.screen.scale)
        before = ready.lines("redactions.jsonl")
        write_lines(draft / "redactions.jsonl", [*before, *(r.to_dict() for r in removed)])
        # A server that has a part of what was confirmed before takes nothing else under its id.
        name = new_id() if ready.folder.upload.exists() else head.id
        values = json.loads(head.to_json()) | {"id": name}
        values["review"] = {"confirmed_at": time.time(), "edits": len(edits.made)}
        (draft / "recording.json").write_text(json.dumps(values, ensure_ascii=False, indent=1))
        _write_manifest(draft, name)
    return ready.folder.upload


def _write_manifest(folder: Path, name: str) -> None:
    files: list[dict[str, Any]] = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as opened:
                sha256 = hashlib.file_digest(opened, "sha256").hexdigest()
            relative = path.relative_to(folder).as_posix()
            files.append({"path": relative, "sha256": sha256, "bytes": path.stat().st_size})
    manifest = {"id": name, "format": FORMAT, "files": files}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))
