"""Goes through a recording once and says what has to be removed; whatever it can't tell, is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from recorder.redact.denied import Denied
from recorder.redact.input.fields import Fields
from recorder.redact.input.typed import Typed
from recorder.redact.redactions import FOREVER, Redaction, known
from recorder.redact.screen.shown import LEAD_S, TAIL_S, Shown
from recorder.redact.text.detectors import PASSWORD, Detectors, Found
from trajectory import Type
from trajectory.hand import Hand, HandStep
from trajectory.recording import ElementSeen, Event, WindowChanged

TITLE_PX = 130  # a title bar with its tabs and the line of the address
BEFORE_S = 0.3
ADDRESS_S = 2.5  # a browser is asked for its address once a second, and tells the new one late
# What a terminal asks for after these is not shown, and no element says so.
_ASKS = re.compile(
    r"^\s*(?:sudo|su|ssh|scp|sftp|rsync|passwd|gpg|kinit|cryptsetup|psql|mysql|docker login|pass|"
    r"openssl|ssh-add|ssh-keygen|git (?:push|pull|clone|fetch))\b"
)


@dataclass
class Judge:
    """Takes the events in the order of their times; `close` returns what has to be removed."""

    detectors: Detectors
    denied: Denied
    shown: Shown = field(default_factory=Shown)
    redactions: list[Redaction] = field(default_factory=list)
    _hand: Hand = field(default_factory=Hand)
    _window: WindowChanged | None = None
    _windows: list[WindowChanged] = field(default_factory=list)
    _focused: list[ElementSeen] = field(default_factory=list)
    _closed: tuple[float, str] | None = None  # since when the window in front is denied, and why
    _asked: bool = False

    def __post_init__(self) -> None:
        self._fields = Fields(self.shown)
        self._keys = Typed(self.detectors)

    def take(self, event: Event) -> None:
        for step in self._hand.take(event):
            self._typed(step)
        for began, ended, found in self._keys.take(event):
            self._remove(began, ended, found)
        match event:
            case WindowChanged():
                self._front(event)
            case ElementSeen():
                self._element(event)
            case _:
                pass
        self._fields.take(event)

    def close(self) -> list[Redaction]:
        for step in self._hand.close():
            self._typed(step)
        for began, ended, found in self._keys.close():
            self._remove(began, ended, found)
        if self._closed:
            self.redactions.append(Redaction(self._closed[0], FOREVER, self._closed[1]))
        self._fields.close()
        self.shown.close()
        redactions = [*self.redactions, *self._fields.redactions, *self.shown.redactions]
        return sorted(set(redactions), key=lambda r: (r.began, r.ended))

    # -- windows ---------------------------------------------------------------------------------

    def _front(self, window: WindowChanged) -> None:
        before, self._window = self._window, window
        self._windows = [*self._windows[-63:], window]
        cause = self._cause(window)
        if self._closed and before:
            self.redactions.append(
                Redaction(
                    self._closed[0], window.t + (LEAD_S if cause else TAIL_S), self._closed[1]
                )
            )
            # It may still be seen beside the window that is now in front.
            self.shown.add(
                window.t, known(before.bounds), before.app, self._closed[1], replaced=True
            )
            self._closed = None
        if cause:
            by_address = window.url and not self._cause(replace(window, url=""))
            self._closed = (window.t - (ADDRESS_S if by_address else LEAD_S), cause)
        else:
            self.shown.window(window)
            self._title(window)

    def _cause(self, window: WindowChanged) -> str:
        cause = self.denied.cause(window)
        if not cause and any(f.kind == "secret" for f in self._found(window)):
            return "secret in a title or an address"
        return cause

    def _title(self, window: WindowChanged) -> None:
        if not any(f.kind == "personal" for f in self._found(window)):
            return
        bounds = known(window.bounds)
        place = bounds
        if bounds:
            left, top, width, _ = bounds
            place = (left, max(0, top - 40), width, TITLE_PX + min(40, max(0, top)))
        cause = "personal data in a title or an address"
        self.redactions.append(
            Redaction(window.t - LEAD_S, window.t + TAIL_S, cause, ("frames",), place)
        )
        self.shown.add(window.t, place, window.app, cause, within=bounds, replaced=True)

    def _found(self, window: WindowChanged) -> tuple[Found, ...]:
        return self.detectors.found(window.title) + self.detectors.found(window.url)

    # -- elements and text -----------------------------------------------------------------------

    def _element(self, element: ElementSeen) -> None:
        if element.focused:
            self._focused = [*self._focused[-63:], element]
        found = [f for f in self.detectors.found(element.name) if f.kind != "name"]
        if found:
            app, place = self._window.app if self._window else "", known(element.bounds)
            cause = f"{'secret' if _secret(found) else 'personal data'} in the name of an element"
            self.redactions.append(
                Redaction(element.t - LEAD_S, element.t + TAIL_S, cause, ("frames",), place)
            )
            self.shown.add(element.t, place, app, cause, replaced=True)

    def _typed(self, step: HandStep) -> None:
        if not isinstance(step.action, Type):
            return
        asked, self._asked = self._asked, bool(_ASKS.match(step.action.text))
        found = self.detectors.found(step.action.text)
        if asked and not found:
            found = (Found("secret", 0, len(step.action.text), "answer to a prompt"),)
        if found:
            self._remove(step.began, step.ended, found)

    def _remove(self, began: float, ended: float, found: tuple[Found, ...]) -> None:
        """Remove what was typed, and paint over the place where it stands from then on."""
        element = next((e for e in reversed(self._focused) if e.t <= ended), None)
        typed = self.detectors.passwords.spans.hit(began, ended)
        if typed:  # where it belongs: removed as a password, and no terminal shows it
            whole = typed[0] <= began and ended <= typed[1]
            if whole and element and element.role == "terminal":
                return
            found = tuple(f for f in found if f.what != PASSWORD)
        if not found:
            return
        cause = f"{'secret' if _secret(found) else 'personal data'} in typed text"
        window = next((w for w in reversed(self._windows) if w.t <= ended), None)
        place = known(element.bounds) if element else None
        self.redactions.append(Redaction(began - BEFORE_S, ended + TAIL_S, cause, place=place))
        if place is None and window:
            place = known(window.bounds)
        self.shown.add(ended, place, window.app if window else "", cause)


def _secret(found: Iterable[Found]) -> bool:
    return any(f.kind == "secret" for f in found)
