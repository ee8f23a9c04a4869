"""What a person changes in a review: a list of edits, kept on disk, the last of which can be undone.

{"op": "cut", "began": s, "ended": s}        all of it, from all streams (trimming is two cuts)
{"op": "mute", "began": s, "ended": s}       what was said
{"op": "delete", "index": n}                 one step
{"op": "blur", "began": s, "ended": s, "box": [left, top, width, height]}
{"op": "words", "index": n, "text": "..."}   one line of the transcript; "" removes it
{"op": "say", "began": s, "ended": s, "text": "..."}
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recorder.redact import Redaction, RedactionError
from recorder.review.prepare import read_lines
from recorder.spool.folder import write_durably

MAX_EDITS = 5000
MAX_TEXT = 5000
_FIELDS = {
    "cut": ("began", "ended"),
    "mute": ("began", "ended"),
    "delete": ("index",),
    "blur": ("began", "ended", "box"),
    "words": ("index", "text"),
    "say": ("began", "ended", "text"),
}


class EditError(ValueError):
    """An edit that can't be made; the message says why."""


class Edits:
    """The edits of one review, in `edits.json` of the recording."""

    def __init__(self, path: Path, *, steps: int, words: int) -> None:
        self._path, self._counts = path, {"delete": steps, "words": words}
        try:
            kept = read_lines(path)
            self.made = [self._checked(edit) for edit in kept]
        except (RedactionError, EditError) as error:
            raise EditError(f"{path} can't be read, remove it to begin anew: {error}") from None

    def add(self, edit: Mapping[str, Any]) -> None:
        """Add an edit; raises EditError for one that can't be made, OSError."""
        if len(self.made) >= MAX_EDITS:
            raise EditError(f"more than {MAX_EDITS} edits")
        self._keep([*self.made, self._checked(edit)])

    def undo(self) -> None:
        """Take the last edit back, if there is one; raises OSError."""
        self._keep(self.made[:-1])

    def _keep(self, edits: list[dict[str, Any]]) -> None:
        lines = "".join(json.dumps(edit, ensure_ascii=False) + "\n" for edit in edits)
        write_durably(self._path, lines.encode())
        self.made = edits

    def _checked(self, edit: Mapping[str, Any]) -> dict[str, Any]:
        op = edit.get("op")
        names = _FIELDS.get(op) if isinstance(op, str) else None
        if names is None or set(edit) != {"op", *names}:
            raise EditError(f"no edit with these fields: {sorted(map(str, edit))}")
        for name in ("began", "ended"):
            if name in names and not _is_number(edit[name]):
                raise EditError(f"{name} is no time")
        if "began" in names and not edit["began"] <= edit["ended"]:
            raise EditError("it ends before it begins")
        if "index" in names and not (
            isinstance(edit["index"], int) and 0 <= edit["index"] < self._counts[str(op)]
        ):
            raise EditError(f"there is no {op} {edit['index']!r}")
        if "text" in names and not (
            isinstance(edit["text"], str) and len(edit["text"]) <= MAX_TEXT
        ):
            raise EditError(f"a text has at most {MAX_TEXT} characters")
        if "box" in names and not _is_box(edit["box"]):
            raise EditError("a box is [left, top, width, height] in pixels")
        return dict(edit)


def redactions(
    edits: Sequence[Mapping[str, Any]], steps: Sequence[Mapping[str, Any]]
) -> list[Redaction]:
    """Return the edits that remove something, as what is removed."""
    removed = []
    for edit in edits:
        match edit["op"]:
            case "cut":
                removed.append(Redaction(edit["began"], edit["ended"], "cut by its person"))
            case "mute":
                removed.append(
                    Redaction(
                        edit["began"], edit["ended"], "muted by its person", ("audio", "words")
                    )
                )
            case "blur":
                left, top, width, height = edit["box"]
                removed.append(
                    Redaction(
                        edit["began"], edit["ended"], "painted over by its person", ("frames",),
                        (left, top, width, height),
                    )
                )  # fmt: skip
            case "delete":
                removed.append(_deleted(edit["index"], steps))
    return removed


def words(
    edits: Sequence[Mapping[str, Any]], spoken: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the transcript as its person left it, in the order of time."""
    lines: list[dict[str, Any]] = [dict(line) for line in spoken]
    for edit in edits:
        text = str(edit.get("text", "")).strip()
        if edit["op"] == "words":
            lines[edit["index"]] |= {"text": text, "by": "person", "confidence": 1.0}
        elif edit["op"] == "say" and text:
            lines.append(
                {"began": edit["began"], "ended": edit["ended"], "text": text,
                 "confidence": 1.0, "by": "person"}
            )  # fmt: skip
    return sorted((line for line in lines if line["text"]), key=lambda line: float(line["began"]))


def _deleted(index: int, steps: Sequence[Mapping[str, Any]]) -> Redaction:
    """Return the interval of a step, and of those that began with it: keys held for one action."""
    step = steps[index]
    together = [other for other in steps if other["began"] == step["began"]]
    ended = max(float(other["ended"]) for other in together)
    cause = "step deleted by its person"
    if step["action"]["type"] in (
        "wait",
        "move",
    ):  # nothing was pressed: what ended just before stays
        return Redaction(step["began"] + 1e-4, ended, cause, ("input",))
    return Redaction(step["began"], ended, cause, ("input", "frames"))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and (
        math.isfinite(value) and abs(value) < 1e9
    )  # fmt: skip


def _is_box(value: object) -> bool:
    return isinstance(value, list) and len(value) == 4 and all(
        isinstance(n, int) and not isinstance(n, bool) and abs(n) < 1 << 20 for n in value
    ) and value[2] > 0 and value[3] > 0  # fmt: skip
