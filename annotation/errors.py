"""What can be refused; every message is for the person who asked and names the way out."""

from __future__ import annotations


class Refused(Exception):
    """A verb did not do what was asked; nothing changed but what the message says. HTTP 409."""


class StaleFence(Refused):
    """The session changed hands since the caller last saw it; what was carried is kept as a draft."""


class StaleScreen(Refused):
    """The screen near the target is not what the proposal saw; nothing was sent, a new round began."""


class AlreadyDecided(Refused):
    """Somebody (or an earlier request) has decided this step."""


class Busy(Refused):
    """A step is being executed at this moment."""


class NotYours(Refused):
    """The verb is not for this person in this state."""


class NoTask(Refused):
    """Nothing in the queue for this person."""


class MissingThoughts(Refused):
    """Steps done by hand still need a thought; `steps` holds their indexes."""

    def __init__(self, steps: list[int]) -> None:
        self.steps = steps
        numbers = ", ".join(str(index) for index in steps)
        super().__init__(f"say why for step {numbers}: what a hand did needs a thought")


class BadInput(Refused):
    """What was sent can't be read; the message names the field. HTTP 400."""
