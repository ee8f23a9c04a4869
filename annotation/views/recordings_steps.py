"""The steps of a recording as its pages show them, and a form's corrections of them."""

from __future__ import annotations

import json
from typing import Any

from django.http import QueryDict

from annotation.errors import BadInput
from annotation.models import Recording
from annotation.recordings.reviewing import Fix


def shown(recording: Recording) -> dict[str, Any]:
    """Return what the step list reads."""
    steps = list(recording.steps.prefetch_related("utterances"))
    for step in steps:
        step.action_text = json.dumps(step.action, ensure_ascii=False)
        x, y = step.action.get("x"), step.action.get("y")
        if isinstance(x, int) and isinstance(y, int) and step.width and step.height:
            step.mark_left, step.mark_top = 100 * x / step.width, 100 * y / step.height
    return {
        "steps": steps,
        "stray": recording.utterances.filter(step=None),
        "sounds": recording.files.filter(path__startswith="audio/", stored=True),
        "reviews": recording.reviews.select_related("reviewer"),
    }


def fixes(form: QueryDict, recording: Recording) -> list[Fix]:
    """Return what a posted form changes; raises BadInput naming the step."""
    found = []
    for step in recording.steps.all():
        thought = form.get(f"thought-{step.index}")
        text = form.get(f"action-{step.index}")
        kept = form.get(f"kept-{step.index}")
        action = None
        if text is not None:
            try:
                action = json.loads(text)
            except ValueError:
                raise BadInput(f"step {step.index + 1}: the action is no JSON") from None
        fix = Fix(
            step.index,
            thought=thought if thought is not None and thought.strip() != step.thought else None,
            action=action if action is not None and action != step.action else None,
            kept=(kept == "1") if kept is not None and (kept == "1") != step.kept else None,
        )
        if len(fix.to_json()) > 1:
            found.append(fix)
    return found
