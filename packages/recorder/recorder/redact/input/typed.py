"""The keys as they were typed, what was taken back included: a secret in the wrong field is one too."""

from __future__ import annotations

from dataclasses import dataclass, field

from recorder.redact.text.detectors import Detectors, Found
from trajectory.recording import Committed, Event, KeyPressed, Pressed, WindowChanged

GAP_S = 30.0  # a text goes on over pauses up to this long
MOST = 4000
OVERLAP = 300

Hit = tuple[float, float, tuple[Found, ...]]  # began, ended, what was found there


@dataclass
class Typed:
    """Gathers characters with their times, and asks the detectors when a text is over."""

    detectors: Detectors
    _characters: list[tuple[float, str]] = field(default_factory=list)
    _app: str = ""

    def take(self, event: Event) -> list[Hit]:
        hits: list[Hit] = []
        if self._characters and event.t - self._characters[-1][0] > GAP_S:
            hits = self.close()
        match event:
            case WindowChanged(app=app) if app != self._app:
                self._app = app
                hits += self.close()
            case KeyPressed(t=t, key=key, text=text):
                if key in ("enter", "tab"):
                    text = "\n"
                elif key == "backspace":
                    text = ""
                self._characters += [(t, c) for c in text if c >= " " or c == "\n"]
            case Pressed(t=t) if self._characters:
                self._characters.append((t, "\n"))
            case Committed(t=t, text=text):
                self._characters += [(t, c) for c in text]
            case _:
                pass
        if len(self._characters) > MOST:
            overlap = self._characters[-OVERLAP:]
            hits += self.close()
            self._characters = overlap
        return hits

    def close(self) -> list[Hit]:
        characters, self._characters = self._characters, []
        text = "".join(character for _, character in characters)
        return [
            (characters[f.start][0], characters[min(f.end, len(characters)) - 1][0], (f,))
            for f in self.detectors.found(text)
            if f.end > f.start
        ]
