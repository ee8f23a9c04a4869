"""What was typed into password fields, looked for wherever else it turns up.

It is gathered anew from the events of a recording each time, and kept in memory alone: nothing here
writes it, names it in a message or shows it in a `repr`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import lru_cache
from urllib.parse import unquote, unquote_plus

from recorder.redact.input.fields import Fields
from recorder.redact.redactions import Spans
from recorder.redact.screen.shown import Shown
from trajectory.recording import Committed, Event, KeyPressed, KeyReleased

LEAST = 6  # characters; what is shorter stands in ordinary words as well
# One of this many letters may be read or heard as another, be missing or too many.
_WRONG_OF = 8
# What is taken for one another on a picture.
_ALIKE = str.maketrans("1i|!05$82", "llllossbz")
_JOINED = {"rn": "m", "vv": "w", "cl": "d"}
_SEEN = re.compile(r"rn|vv|cl|\S")

_Key = KeyPressed | KeyReleased | Committed


class Passwords:
    """Texts that nobody may see; `spans` is when they were typed where they belong."""

    def __init__(self, texts: Iterable[str] = (), spans: Spans | None = None) -> None:
        stripped = {text.strip() for text in texts}
        self._texts = {_low(text) for text in stripped if len(text) >= LEAST}
        self.spans = spans or Spans([])
        forms = {
            ("".join(c for c, *_ in _seen(text, letters=letters)), letters)
            for text in self._texts
            for letters in (True, False)
        }
        self._forms = [form for form in forms if len(form[0]) >= LEAST]
        self.near = lru_cache(maxsize=8192)(self._near)

    def __bool__(self) -> bool:
        return bool(self._texts)

    def within(self, text: str) -> list[tuple[int, int]]:
        """Return where a text has one of them, in large or small letters; the whole of it where it
        has one in the percent-encoding of an address."""
        if not self._texts:
            return []
        low = _low(text)
        found = [span for one in self._texts for span in _places(one, low)]
        decoded = {unquote(text), unquote_plus(text), unquote(unquote(text))} - {text}
        if not found and any(one in _low(form) for form in decoded for one in self._texts):
            return [(0, len(text))]
        return found

    def _near(self, text: str) -> tuple[tuple[int, int], ...]:
        """Return where a text that was read or heard has one of them, spaces and slips aside."""
        found: list[tuple[int, int]] = []
        seen = {letters: _seen(_low(text), letters=letters) for letters in (True, False)}
        for form, letters in self._forms:
            parts = seen[letters]
            solid = "".join(c for c, *_ in parts)
            found += [(parts[a][1], parts[b - 1][2]) for a, b in _like(form, solid) if b > a]
        return tuple(found)


def passwords(events: Iterable[Event]) -> Passwords:
    """Return what was typed into password fields; keys of which nobody can tell are none.

    `events` come in the order of their times.
    """
    fields, keys = Fields(Shown()), list[_Key]()
    for event in events:
        fields.take(event)
        if isinstance(event, (KeyPressed, Committed)) or (
            isinstance(event, KeyReleased) and event.key == "ctrl"
        ):
            keys.append(event)
    fields.close()
    times = [key.t for key in keys]
    texts = set[str]()
    for began, ended in fields.typed:
        texts |= _lines(keys[bisect_left(times, began) : bisect_left(times, ended)])
    return Passwords(texts, Spans(fields.typed))


def _lines(keys: Iterable[_Key]) -> set[str]:
    """Return the texts that keys put in, as they were at each Enter, Tab and deletion."""
    found = set[str]()
    line, at = list[str](), 0
    ctrl = deleting = False
    for event in keys:
        key = event.key if not isinstance(event, Committed) else ""
        text = event.text if not isinstance(event, KeyReleased) else ""
        if key == "ctrl":
            ctrl = isinstance(event, KeyPressed)
        elif text.isprintable() and text:
            line[at:at] = text
            at, deleting = at + len(text), False
        elif key in ("enter", "tab") or ctrl:
            found.add("".join(line))
            line, at = [], 0
        elif key in ("backspace", "delete"):
            if not deleting:
                found.add("".join(line))
            deleting = True
            at = max(0, at - (key == "backspace"))
            del line[at : at + 1]
        else:
            places = {"left": max(0, at - 1), "right": at + 1, "home": 0, "end": len(line)}
            at = min(len(line), places.get(key, at))
    return found | {"".join(line)}


def _low(text: str) -> str:
    """Return a text of the same length in small letters."""
    return text.lower() if text.isascii() else "".join(c.lower()[0] for c in text)


def _seen(text: str, *, letters: bool) -> list[tuple[str, int, int]]:
    """Return how the characters of a text may look on a picture, each with where it stood.

    Spaces are left out, with `letters` all signs too.
    """
    seen = [
        (_JOINED.get(m[0], m[0].translate(_ALIKE)), m.start(), m.end())
        for m in _SEEN.finditer(text)
    ]
    return [part for part in seen if part[0].isalnum() or not letters]


def _places(one: str, text: str) -> Iterator[tuple[int, int]]:
    at = text.find(one)
    while at >= 0:
        yield at, at + len(one)
        at = text.find(one, at + 1)


def _like(one: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield where `text` has `one` with few letters wrong, missing or too many (Sellers 1980)."""
    most = len(one) // _WRONG_OF
    size = len(one) // (most + 1)  # of so many parts at least one is right
    if not any(one[n * size : (n + 1) * size] in text for n in range(most + 1)):
        return
    column = [(n, 0) for n in range(len(one) + 1)]  # how many are wrong, and where it began
    for at, character in enumerate(text):
        above, column = column, [(0, at + 1)]
        for n, wanted in enumerate(one):
            (same, a), (more, b), (less, c) = above[n], above[n + 1], column[n]
            column.append(min((same + (wanted != character), a), (more + 1, b), (less + 1, c)))
        if column[-1][0] <= most:
            yield column[-1][1], at + 1
