"""Take control by hand, and give it back."""

from __future__ import annotations

from django.contrib.auth.models import User

from annotation.models import Session, Step


def take_over(session: Session, *, fence: int, by: User) -> Session:
    """Give the author mouse and keyboard; the open proposal goes stale. Raises StaleFence, Busy."""
    raise NotImplementedError


def hand_back(session: Session, *, fence: int, by: User) -> list[Step]:
    """Take mouse and keyboard back; return the steps that the hand did, and ask the policy again."""
    raise NotImplementedError
