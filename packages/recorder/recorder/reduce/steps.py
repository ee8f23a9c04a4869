"""The lines of `steps.jsonl`, from events in the order of their times; memory stays flat."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from recorder.reduce.history import History
from trajectory import Type, action_to_dict, target
from trajectory.hand import Hand, HandStep, Limits
from trajectory.recording import (
    ElementSeen,
    Event,
    FrameTaken,
    Missed,
    Paused,
    Resumed,
    WindowChanged,
)


def steps(events: Iterable[Event], *, scale: float = 1.0) -> Iterator[dict[str, Any]]:
    """Yield one line of `steps.jsonl` after the other, as a dictionary.

    `scale` is the screen's (pixels where an ordinary one has one). `frame` is the sha256 of the last
    picture that was complete before the step's first press, less a guard; "" where there is none.
    `frame_gap_ms` is how much earlier it was complete.
    """
    hand, history, index = Hand(Limits().scaled(scale)), History(), 0
    for event in events:
        ready = hand.take(event)
        for step in ready:
            yield _line(index, step, history)
            index += 1
        match event:
            case FrameTaken() | ElementSeen() | WindowChanged():
                history.take(event, hand.moments())
            case Paused() | Resumed() | Missed():
                history.forget()
    for step in hand.close():
        yield _line(index, step, history)
        index += 1


def write_steps(events: Iterable[Event], path: Path, *, scale: float = 1.0) -> int:
    """Write `steps.jsonl` and return how many steps there are; raises OSError."""
    count = 0
    with path.open("w", encoding="utf-8") as out:
        for line in steps(events, scale=scale):
            out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
            count += 1
    return count


def _line(index: int, step: HandStep, history: History) -> dict[str, Any]:
    frame, window = history.frame(step.began), history.window(step.began)
    place = target(step.action)
    if place is not None:
        element = history.under(step.began, place)
    else:
        element = history.focused(step.began) if isinstance(step.action, Type) else None
    return {
        "index": index,
        "began": round(step.began, 6),
        "ended": round(step.ended, 6),
        "action": action_to_dict(step.action),
        "frame": frame.sha256 if frame else "",
        "frame_gap_ms": round((step.began - frame.t) * 1000) if frame else 0,
        "element": element
        and {"role": element.role, "name": element.name, "bounds": list(element.bounds)},
        "window": {
            "app": window.app if window else "",
            "title": window.title if window else "",
            "url": window.url if window else "",
        },
    }
