"""Whether a recorded action could be done again as it stands, and whether it was recorded before. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import trajectory
from trajectory import Drag, FormatError, Point

# A hand is not exact: a click of this many pixels beside an element still meant it.
BESIDE = 6


def problem(
    record: object, *, frame: tuple[int, int] | None, element: Mapping[str, Any] | None
) -> str:
    """Return why an action can't be executed as it stands; "" where it can.

    It has to parse, to have a picture from before it, to lie inside that, and on its element where
    one was seen.
    """
    try:
        action = trajectory.action_from_dict(record)
    except FormatError as error:
        return f"no action: {error}"[:300]
    if frame is None:
        return "there is no picture from before it"
    points: Iterable[Point] = action.path if isinstance(action, Drag) else ()
    aim = trajectory.target(action)
    for x, y in (*points, *((aim,) if aim else ())):
        if not (0 <= x < frame[0] and 0 <= y < frame[1]):
            return f"({x}, {y}) lies outside of the picture of {frame[0]}×{frame[1]}"[:300]
    bounds = element.get("bounds") if element else None
    if aim and bounds:
        left, top, width, height = bounds
        inside = (
            left - BESIDE <= aim[0] <= left + width + BESIDE
            and top - BESIDE <= aim[1] <= top + height + BESIDE
        )
        if not inside:
            return f"({aim[0]}, {aim[1]}) does not lie on {str((element or {}).get('name'))[:80]!r}"
    return ""


def fingerprint(owner: int, task: str, actions: Iterable[object]) -> str:
    """Return what two recordings of one contributor share if they do the same for the same task."""
    whole = json.dumps([owner, task, list(actions)], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(whole.encode()).hexdigest()
