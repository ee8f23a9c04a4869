"""What stays on the screen after it was typed or left: painted over for as long as it may be seen."""

from __future__ import annotations

from dataclasses import dataclass, field

from recorder.redact.redactions import FOREVER, Box, Redaction, holds
from trajectory.recording import WindowChanged

LEAD_S = 1.0  # a window is on the screen before we hear of it
TAIL_S = 0.5  # and still there after


@dataclass(slots=True)
class _Item:
    place: Box | None
    within: Box | None  # what must be covered to hide it
    app: str
    replaced: bool  # whether another page of the same application hides it
    cause: str
    since: float | None


@dataclass
class Shown:
    """Follows which of them the window in front covers whole."""

    redactions: list[Redaction] = field(default_factory=list)
    _items: list[_Item] = field(default_factory=list)

    def add(
        self,
        t: float,
        place: Box | None,
        app: str,
        cause: str,
        *,
        within: Box | None = None,
        replaced: bool = False,
    ) -> None:
        """From `t` on `place` shows what nobody may see; None where nobody knows which place."""
        for item in self._items:
            if (item.place, item.app, item.cause) == (place, app, cause):
                item.since = t if item.since is None else item.since
                return
        self._items.append(_Item(place, within or place, app, replaced, cause, t))

    def window(self, window: WindowChanged) -> None:
        for item in self._items:
            covered = (
                item.within is not None
                and holds(window.bounds, item.within)
                and (window.app != item.app or item.replaced)
            )
            if covered and item.since is not None:
                self._put(item, item.since, window.t + TAIL_S)
                item.since = None
            elif not covered and item.since is None:
                item.since = window.t - LEAD_S

    def close(self) -> None:
        for item in self._items:
            if item.since is not None:
                self._put(item, item.since, FOREVER)

    def _put(self, item: _Item, began: float, ended: float) -> None:
        self.redactions.append(Redaction(began, ended, item.cause, ("frames",), item.place))
