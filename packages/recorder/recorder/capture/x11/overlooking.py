"""Pictures of the screen for which the recorder's own small window does not count."""

from __future__ import annotations

from typing import Any

from recorder.capture.x11.frames import Frames


class Overlooking(Frames):
    """Frames that overlook what the window draws: it is painted over in every picture anyway.

    Else its clock would have one taken and written each second.
    """

    def _note(self, event: Any) -> None:
        area = event.area
        box = (area.x, area.y, area.width, area.height)
        if self._dirt is None and self._sink.own.holds(box, self._time.seconds(event.timestamp)):
            # The server tells only of what is drawn outside of what it told already: begin again.
            # What was drawn elsewhere until it reads this has been told before.
            self._display.damage_subtract(self._damage)
            self._display.flush()
            return
        super()._note(event)
