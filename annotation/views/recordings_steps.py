"""The steps of a recording as its pages show them, and a form's corrections of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict
from django.urls import reverse

from annotation.hand import commands
from annotation.models import Recording, RecordingStep
from annotation.recordings import checks
from annotation.recordings.reviewing import Fix
from trajectory import action_to_dict


@dataclass(slots=True)
class Corrections:
    """What a posted form changes; where something is wrong, all that was typed and why, by step."""

    fixes: list[Fix] = field(default_factory=list)
    typed: dict[int, dict[str, str]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)  # by the field's name in the form
    reasons: str = ""


def shown(recording: Recording, made: Corrections | None = None) -> dict[str, Any]:
    """Return what the step list reads; `made` is what somebody has typed into it."""
    made = made or Corrections()
    steps = list(recording.steps.prefetch_related("utterances"))
    for step in steps:
        typed = made.typed.get(step.index, {})
        step.typed_thought = typed.get("thought", step.thought)
        step.typed_command = typed.get("command", commands.describe(step.action))
        step.typed_kept = typed["kept"] == "1" if "kept" in typed else step.kept
        step.command_error = made.errors.get(f"command-{step.index}", "")
    files = list(recording.files.filter(path__startswith="audio/", stored=True))
    began = recording.about.get("sounds", {})
    for file in files:
        file.url = reverse("recording-sound", args=[recording.name, file.sha256])
    heard = [(began.get(file.path.removeprefix("audio/")), file.url) for file in files]
    return {
        "steps": steps,
        "actions": {step.index: step.action for step in steps},
        "stray": recording.utterances.filter(step=None),
        "sounds": files,
        "heard": [{"began": at, "url": url} for at, url in heard if at is not None],
        "reviews": recording.reviews.select_related("reviewer"),
    }


def corrections(form: QueryDict, recording: Recording) -> Corrections:
    """Read what was posted; everything typed is kept."""
    made = Corrections(reasons=form.get("reasons", "").strip())
    for step in recording.steps.all():
        names = {name: f"{name}-{step.index}" for name in ("thought", "command", "kept")}
        typed = {name: form[key] for name, key in names.items() if key in form}
        made.typed[step.index] = typed
        thought, kept = typed.get("thought"), typed.get("kept")
        action, wrong = _action(step, typed.get("command"))
        if kept == "1" and not wrong and action is None and step.problem:
            wrong = f"it can't be kept: {step.problem}"
        if wrong:
            made.errors[names["command"]] = wrong
            continue
        fix = Fix(
            step.index,
            thought=thought if thought is not None and thought.strip() != step.thought else None,
            action=action,
            kept=(kept == "1") if kept is not None and (kept == "1") != step.kept else None,
        )
        if len(fix.to_json()) > 1:
            made.fixes.append(fix)
    return made


def _action(step: RecordingStep, text: str | None) -> tuple[dict[str, Any] | None, str]:
    """Return the action that was typed instead of the recorded one, and what is wrong with it."""
    if text is None or text.strip() == commands.describe(step.action):
        return None, ""
    frame = (step.width, step.height) if step.screenshot else None
    try:
        action = action_to_dict(commands.parse(text, frame=frame))
    except commands.CommandError as error:
        return None, str(error)
    # The person corrects where the hand missed: the element is what it missed.
    return action, checks.problem(action, frame=frame, element=None)
