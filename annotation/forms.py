"""Forms of the pages; each says beside the field what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.http import QueryDict

from annotation.data.reviews import Mark
from annotation.hand import commands
from annotation.models import Review, Session, Step, StepReview, Task
from trajectory import action_to_dict

MAX_IMPORT_BYTES = 10_000_000


class TaskFilter(forms.Form):
    """What the list of tasks shows."""

    q = forms.CharField(required=False, label="Search")
    state = forms.ChoiceField(
        required=False, choices=[("", "any state"), *Task.State.choices], label="State"
    )
    domain = forms.CharField(required=False, label="Domain")


class ExportForm(forms.Form):
    """How accepted sessions are written for a trainer."""

    DIALECTS = [
        ("box", "UI-TARS 1.5, screenshots"),
        ("point", "UI-TARS-2, screenshots"),
        ("element", "element numbers, lists of elements"),
    ]

    dialect = forms.ChoiceField(choices=DIALECTS, label="Actions as")
    domain = forms.CharField(required=False, label="Domain")
    thoughts = forms.ChoiceField(
        required=False,
        choices=[("", "all"), ("without-synthesized", "without synthesized")],
        label="Thoughts of recordings",
    )


class ImportForm(forms.Form):
    """Tasks as a file or as typed text; the text is kept when something is wrong with it."""

    FORMATS = [("jsonl", "JSON lines"), ("json", "JSON list"), ("csv", "CSV with a header")]

    file = forms.FileField(required=False)
    text = forms.CharField(required=False, strip=False, widget=forms.Textarea)
    format = forms.ChoiceField(choices=FORMATS, initial="jsonl")

    def clean(self) -> dict[str, Any]:
        """Put the file's text into `text` and its kind, from its name, into `format`."""
        data = super().clean() or {}
        upload = data.get("file")
        if upload is not None:
            if upload.size > MAX_IMPORT_BYTES:
                self.add_error("file", "the file is larger than 10 MB; split it")
                return data
            try:
                data["text"] = upload.read().decode("utf-8-sig")
            except UnicodeDecodeError as error:
                self.add_error("file", f"the file is not UTF-8 text (byte {error.start})")
                return data
            suffix = upload.name.rpartition(".")[2].lower()
            data["format"] = suffix if suffix in dict(self.FORMATS) else data.get("format")
        if not data.get("text", "").strip():
            self.add_error("text", "choose a file or paste some tasks")
        return data


@dataclass(slots=True)
class ReviewForm:
    """A verdict with a word on every step; built by hand because steps differ in number."""

    session: Session
    steps: list[Step]
    verdict: str = ""
    reasons: str = ""
    marks: list[Mark] = field(default_factory=list)
    typed: dict[int, dict[str, str]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def read(self, data: QueryDict) -> bool:
        """Read what was posted; whether it can be submitted. Everything typed is kept."""
        self.verdict = data.get("verdict", "")
        self.reasons = data.get("reasons", "").strip()
        if self.verdict not in Review.Verdict.values:
            self.errors["verdict"] = "choose a verdict"
        needs = (Review.Verdict.RETURNED, Review.Verdict.REJECTED)
        if self.verdict in needs and not self.reasons:
            self.errors["reasons"] = "say why, so that the author can learn from it"
        for step in self.steps:
            mark = self._mark(step, data)
            if mark is not None:
                self.marks.append(mark)
        return not self.errors

    def _mark(self, step: Step, data: QueryDict) -> Mark | None:
        names = ("mark", "thought", "command", "comment")
        # A form's text arrives with the line ends of HTTP: left so, every thought of several lines
        # would count as corrected.
        typed = {
            name: data.get(f"{name}-{step.index}", "").replace("\r\n", "\n").strip()
            for name in names
        }
        self.typed[step.index] = typed
        if not typed["mark"]:
            typed["mark"] = StepReview.Mark.RIGHT
        if typed["mark"] not in StepReview.Mark.values:
            self.errors[f"mark-{step.index}"] = "mark it right, wrong or redundant"
            return None
        action = None
        if typed["command"] and typed["command"] != commands.describe(step.action):
            try:
                frame = (step.observation["width"], step.observation["height"])
                action = action_to_dict(commands.parse(typed["command"], frame=frame))
            except commands.CommandError as error:
                self.errors[f"command-{step.index}"] = str(error)
                return None
        thought = typed["thought"] if typed["thought"] != step.thought.strip() else ""
        return Mark(step.index, typed["mark"], thought, action, typed["comment"])
