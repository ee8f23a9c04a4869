"""Password fields: what is typed into one, or where nobody could tell that it is none.

Who has the focus is told after it moved. So a password field has it from the press, the key or the
change of the window that may have moved it there, and has it until another is told to have it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from recorder.redact.redactions import EVERYTHING, Redaction, known
from recorder.redact.screen.shown import LEAD_S, TAIL_S, Shown
from trajectory.recording import (
    Committed,
    ElementSeen,
    Event,
    KeyPressed,
    Missed,
    Pressed,
    Resumed,
    WindowChanged,
)

# Who has the focus is told within this time after the click or the key that moved it.
ANSWER_S = 1.5
BACK_S = 5.0  # of several moves before a field was told those within this time count
LEAVE_S = 2.0  # nobody tells who has the focus after a click elsewhere: from then on it is unknown
MOST_MOVES = 64
GAP_S = 2.0
BEFORE_S = 0.3
_UNSURE = "nobody could tell that this is no password field"


@dataclass(slots=True)
class _Move:
    """Something that may have moved the focus; `place` of a press."""

    t: float
    place: tuple[int, int] | None = None
    typed: bool = False  # whether something was typed after it, and before the next


@dataclass
class Fields:
    """Follows the focus. Without a word about it, every text that is typed is taken for a password."""

    shown: Shown
    redactions: list[Redaction] = field(default_factory=list)
    # When a password field had the focus, without the margin for what is told late.
    typed: list[tuple[float, float]] = field(default_factory=list)
    _focused: ElementSeen | None = None
    # What may have moved the focus, as far as nobody told where to; the last one stays.
    _moves: list[_Move] = field(default_factory=lambda: [_Move(0.0)])
    _left: float | None = None  # when it may have left the password field
    _secret: float | None = None  # since when a password field has the focus
    _since_move: float = 0.0  # the same without the margin
    _unsure: list[float] = field(default_factory=list)  # first and last key that nobody vouches for
    _last: float = -1.0  # the last key that typed something
    _window: WindowChanged | None = None

    def take(self, event: Event) -> None:
        if self._unsure and event.t - self._unsure[1] > GAP_S:
            self._end_unsure()
        if self._left is not None and event.t > self._left + LEAVE_S:
            self._leave(self._left + LEAVE_S)
        match event:
            case ElementSeen(focused=True):
                self._focus(event)
            case ElementSeen(password=True) if self._is_pressed(event):
                self._focus(event)
            case ElementSeen(t=t) if self._is_another(event):
                self._leave(t)
            case WindowChanged():
                self._front(event)
            case Resumed(t=t):  # nobody knows what was done in the pause
                self._moved(t)
                self._leave(t)
            case Missed(t=t, since=since, what="all"):  # nor what was told of the focus meanwhile
                if self._last >= since:
                    self.redactions.append(Redaction(since - BEFORE_S, t + TAIL_S, _UNSURE))
                self._moved(t)
                self._leave(t)
            case Pressed(t=t, x=x, y=y):
                self._moved(t, (x, y))
                if not self._focused or not _inside(self._focused, x, y):
                    self._press_elsewhere(t)
            case KeyPressed(t=t, key=key, text=text):
                if key in ("tab", "enter", "escape"):
                    self._moved(t)
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
                self._left = None
                return
            self._end_secret(event.t)
        moved_at = self._moves[-1].t
        if event.password is False and self._unsure and event.t - moved_at <= ANSWER_S and (
            self._unsure[0] >= moved_at
        ):  # fmt: skip
            self._unsure = []
        self._focused = event
        if event.password:
            self._since_move = self._since(event)
            self._secret = min(self._since_move, event.t - LEAD_S)
            if self._unsure and self._unsure[0] >= self._secret:
                self._unsure = []
        # What was told may be the answer to an earlier move than the last.
        lately = [m for m in self._moves if event.t - m.t < ANSWER_S]
        self._moves = lately or [_Move(event.t)]

    def _front(self, event: WindowChanged) -> None:
        before, self._window = self._window, event
        if before and (before.app, before.bounds) == (event.app, event.bounds):
            return
        self._moved(event.t)
        focused = self._focused
        # The element in a new window may be told before the window itself.
        if focused and event.t - focused.t <= LEAD_S and known(event.bounds):
            left, top = focused.bounds[:2]
            x, y, width, height = event.bounds
            if x <= left < x + width and y <= top < y + height:
                return
        self._leave(event.t)

    def _since(self, told: ElementSeen) -> float:
        """Return when the focus moved to a field that was told later.

        That is a press on the field, else the first key or window after which something was typed:
        it may have been left again before it was told. Else the last that may have moved it. A
        terminal's line is told as of its first key: no command before its last Enter answers a prompt.
        """
        lately = [m for m in self._moves if told.t - m.t <= BACK_S]
        if told.role == "terminal":
            return lately[-1].t if lately else told.t
        pressed = (m.t for m in lately if m.place and _inside(told, *m.place))
        typed = (m.t for m in lately if m.place is None and m.typed)
        return next(pressed, next(typed, self._moves[-1].t))

    def _moved(self, t: float, place: tuple[int, int] | None = None) -> None:
        self._moves = [*self._moves[-MOST_MOVES:], _Move(t, place)]

    def _press_elsewhere(self, t: float) -> None:
        if self._secret is None:
            self._focused = None
        elif self._left is None:  # a click takes the focus away or not: whoever has it then is told
            self._left = t

    def _is_pressed(self, event: ElementSeen) -> bool:
        """Whether the last press was on this element, and nobody told since who has the focus."""
        press = next((m for m in reversed(self._moves) if m.place), None)
        return (
            press is not None and press.place is not None and _inside(event, *press.place)
            and (self._focused is None or self._focused.t < press.t)
        )  # fmt: skip

    def _is_another(self, event: ElementSeen) -> bool:
        """Whether a click that may have left the password field is told to be on something else."""
        return (
            self._left is not None and self._focused is not None and event.password is False
            and bool(event.role) and event.bounds != self._focused.bounds
        )  # fmt: skip

    def _leave(self, t: float) -> None:
        if self._secret is not None:
            self._end_secret(t)
        self._focused = None

    def _typed(self, t: float) -> None:
        self._moves[-1].typed, self._last = True, t
        if self._secret is not None or (self._focused and self._focused.password is False):
            return
        self._unsure = [self._unsure[0] if self._unsure else t, t]

    def _end_secret(self, t: float) -> None:
        assert self._secret is not None
        self.typed.append((self._since_move, t))
        place = known(self._focused.bounds) if self._focused else None
        cause, app = "password field", self._window.app if self._window else ""
        self.redactions.append(Redaction(self._secret, t + TAIL_S, cause, EVERYTHING, place))
        # A page may show what its password fields hold; a terminal shows nothing of it.
        if place and self._focused and self._focused.role != "terminal":
            self.shown.add(t, place, app, cause, replaced=True)
        self._secret = self._left = None

    def _end_unsure(self) -> None:
        if self._unsure:
            place = known(self._focused.bounds) if self._focused else None
            began, ended = self._unsure[0] - BEFORE_S, self._unsure[1] + TAIL_S
            self.redactions.append(Redaction(began, ended, _UNSURE, EVERYTHING, place))
        self._unsure = []


def _inside(element: ElementSeen, x: int, y: int) -> bool:
    left, top, width, height = element.bounds
    return left <= x < left + width and top <= y < top + height
