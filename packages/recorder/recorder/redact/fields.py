"""Password fields: what is typed into one, or where nobody could tell that it is none."""

from __future__ import annotations

from dataclasses import dataclass, field

from recorder.redact.redactions import EVERYTHING, Redaction, known
from recorder.redact.shown import LEAD_S, TAIL_S, Shown
from trajectory.recording import (
    Committed,
    ElementSeen,
    Event,
    KeyPressed,
    Pressed,
    WindowChanged,
)

# Who has the focus is told within this time after the click or the key that moved it.
ANSWER_S = 1.5
BACK_S = 5.0  # how far back a field that turns out to be one for passwords reaches at most
GAP_S = 2.0


@dataclass
class Fields:
    """Follows the focus. Without a word about it, every text that is typed is taken for a password."""

    shown: Shown
    redactions: list[Redaction] = field(default_factory=list)
    _focused: ElementSeen | None = None
    _moved_at: float = 0.0  # when the focus may last have moved
    _secret: float | None = None  # since when a password field has the focus
    _unsure: list[float] = field(default_factory=list)  # first and last key that nobody vouches for
    _window: WindowChanged | None = None

    def take(self, event: Event) -> None:
        if self._unsure and event.t - self._unsure[1] > GAP_S:
            self._end_unsure()
        match event:
            case ElementSeen(focused=True):
                self._focus(event)
            case WindowChanged():
                self._front(event)
            case Pressed(t=t, x=x, y=y):
                self._moved_at = t
                if not self._focused or not _inside(self._focused, x, y):
                    self._leave(t)
            case KeyPressed(t=t, key=key, text=text):
                if key in ("tab", "enter", "escape"):
                    self._moved_at = t
                if text or len(key) == 1:
                    self._typed(t)
            case Committed(t=t):
                self._typed(t)
            case _:
                pass

    def close(self) -> None:
        self._end_unsure()
        if self._secret is not None:
            self._end_secret(float("inf"))

    def _focus(self, event: ElementSeen) -> None:
        if self._secret is not None:
            if (
                event.password is not False
                and self._focused
                and event.bounds == self._focused.bounds
            ):
                return
            self._end_secret(event.t)
        moved_lately = event.t - self._moved_at <= ANSWER_S
        if event.password is False and self._unsure and moved_lately and (
            self._unsure[0] >= self._moved_at
        ):  # fmt: skip
            self._unsure = []
        self._focused = event
        if event.password:
            since = self._moved_at if event.t - self._moved_at <= BACK_S else event.t
            self._secret = min(since, event.t - LEAD_S)
            if self._unsure and self._unsure[0] >= self._secret:
                self._unsure = []

    def _front(self, event: WindowChanged) -> None:
        before, self._window = self._window, event
        if before and (before.app, before.bounds) == (event.app, event.bounds):
            return
        self._moved_at = event.t
        focused = self._focused
        # The element in a new window may be told before the window itself.
        if focused and event.t - focused.t <= LEAD_S and known(event.bounds):
            left, top = focused.bounds[:2]
            x, y, width, height = event.bounds
            if x <= left < x + width and y <= top < y + height:
                return
        self._leave(event.t)

    def _leave(self, t: float) -> None:
        if self._secret is not None:
            self._end_secret(t)
        self._focused = None

    def _typed(self, t: float) -> None:
        if self._secret is not None or (self._focused and self._focused.password is False):
            return
        self._unsure = [self._unsure[0] if self._unsure else t, t]

    def _end_secret(self, t: float) -> None:
        assert self._secret is not None
        place = known(self._focused.bounds) if self._focused else None
        cause, app = "password field", self._window.app if self._window else ""
        self.redactions.append(Redaction(self._secret, t + TAIL_S, cause, EVERYTHING, place))
        if place:  # a page may show what its password fields hold
            self.shown.add(t, place, app, cause, replaced=True)
        self._secret = None

    def _end_unsure(self) -> None:
        if self._unsure:
            place = known(self._focused.bounds) if self._focused else None
            cause = "nobody could tell that this is no password field"
            began, ended = self._unsure[0] - 0.3, self._unsure[1] + TAIL_S
            self.redactions.append(Redaction(began, ended, cause, EVERYTHING, place))
        self._unsure = []


def _inside(element: ElementSeen, x: int, y: int) -> bool:
    left, top, width, height = element.bounds
    return left <= x < left + width and top <= y < top + height
