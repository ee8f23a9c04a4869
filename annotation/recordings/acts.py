"""Utterances and actions as alignment sees them, and what it finds. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from trajectory import Action


@dataclass(frozen=True, slots=True)
class Act:
    """One action as alignment sees it; times in recorder's seconds.

    `element` is everything that names its target: role, name, window's title where that says more.
    """

    began: float
    ended: float
    action: Action
    element: str = ""


@dataclass(frozen=True, slots=True)
class Spoken:
    """One utterance as alignment sees it."""

    began: float
    ended: float
    text: str


@dataclass(frozen=True, slots=True)
class Pair:
    """The action that an utterance means; `act` is None where none is near. `fit` is 0 to 1."""

    act: int | None
    fit: float
