"""Verbs of Review."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from annotation.models import Review, Session


@dataclass(frozen=True, slots=True)
class Mark:
    """A reviewer's word on one step; `thought` and `action` replace what was recorded."""

    step: int  # Step.index
    mark: str  # StepReview.Mark
    thought: str = ""
    action: dict[str, Any] | None = None
    comment: str = ""


def submit(
    session: Session, *, reviewer: User, verdict: str, reasons: str = "", marks: Sequence[Mark] = ()
) -> Review:
    """Judge a submitted session; raises NotYours for its author, Refused if it isn't submitted.

    RETURNED and REJECTED need reasons; ACCEPTED with corrections becomes CORRECTED.
    """
    raise NotImplementedError
