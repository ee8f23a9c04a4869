"""What a recording of a person's work consists of: one event per line of `events.jsonl`, in the order of capture.

Every time `t` is in seconds on the recorder's one monotonic clock, 0 at the start of the recording.
Points are in pixels of the whole virtual screen, the left upper corner of all monitors at (0, 0).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from trajectory.actions import Button

FORMAT = "tandem-recording/1"


class EventError(ValueError):
    """A line that is no event; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Moved:
    t: float
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Pressed:
    """A mouse button went down."""

    t: float
    x: int
    y: int
    button: Button


@dataclass(frozen=True, slots=True)
class Released:
    """A mouse button came up."""

    t: float
    x: int
    y: int
    button: Button


@dataclass(frozen=True, slots=True)
class Scrolled:
    """The wheel turned: `dx` to the right and `dy` downwards, in clicks."""

    t: float
    x: int
    y: int
    dx: int
    dy: int


@dataclass(frozen=True, slots=True)
class KeyPressed:
    """A key went down, or repeated. `key` is its canonical name (`trajectory.keys`).

    `text` is what the system says that it typed: "" for a key that types nothing, for a dead key,
    and for a key that an input method took.
    """

    t: float
    key: str
    text: str = ""
    repeat: bool = False


@dataclass(frozen=True, slots=True)
class KeyReleased:
    t: float
    key: str


@dataclass(frozen=True, slots=True)
class Committed:
    """Text that an input method or a dead-key sequence put in, whole.

    An input method is found out only by what it puts in: the keys from `since` to `t` were its own,
    and what they type without it (`KeyPressed.text`) was not put in. None where no key was taken.
    """

    t: float
    text: str
    since: float | None = None


@dataclass(frozen=True, slots=True)
class WindowChanged:
    """Another window has the focus, or its title changed. `bounds` is (left, top, width, height)."""

    t: float
    app: str
    title: str
    bounds: tuple[int, int, int, int] = (0, 0, 0, 0)
    url: str = ""
    private: bool = False


@dataclass(frozen=True, slots=True)
class ElementSeen:
    """The accessible element under the pointer, or with the focus where `focused`.

    `password` is None where nobody could tell: redaction then takes it for a password field.
    """

    t: float
    role: str
    name: str
    bounds: tuple[int, int, int, int]
    focused: bool = False
    password: bool | None = None


@dataclass(frozen=True, slots=True)
class FrameTaken:
    """A picture of the whole screen, `frames/<sha256>.png`; the grab took from `began` to `t`.

    A picture like the one before is an event of its own with the same sha256: it says that nothing
    had changed by then.
    """

    t: float
    began: float
    sha256: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class AudioWritten:
    """A piece of sound, `audio/<name>`: FLAC, 16 kHz, mono; its first sample was heard at `t`."""

    t: float
    name: str
    samples: int
    rate: int = 16_000
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Paused:
    """Nothing at all was captured from here to the next `Resumed`."""

    t: float


@dataclass(frozen=True, slots=True)
class Resumed:
    t: float


@dataclass(frozen=True, slots=True)
class Marked:
    """The person pressed the marker's key, perhaps with a word about why."""

    t: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class ClockRead:
    """What the wall clock said at `t`, in seconds since the epoch: the anchor, and its drift.

    `skew` is how far the clock that stamps the mouse and the keys had run from the recorder's since
    the start, and `uncertain` how exactly that is known; both in seconds, corrected for already.
    """

    t: float
    wall: float
    skew: float = 0.0
    uncertain: float = 0.0


@dataclass(frozen=True, slots=True)
class Missed:
    """From `since` to `t` something was not captured: a full disk, a suspended computer, a lost device."""

    t: float
    since: float
    what: str
    cause: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """The end of a recording that was ended by its person; a crash leaves none."""

    t: float


Event = (
    Moved | Pressed | Released | Scrolled | KeyPressed | KeyReleased | Committed | WindowChanged
    | ElementSeen | FrameTaken | AudioWritten | Paused | Resumed | Marked | ClockRead | Missed | Stopped
)  # fmt: skip

KINDS: dict[str, type[Event]] = {
    "moved": Moved,
    "pressed": Pressed,
    "released": Released,
    "scrolled": Scrolled,
    "key_pressed": KeyPressed,
    "key_released": KeyReleased,
    "committed": Committed,
    "window": WindowChanged,
    "element": ElementSeen,
    "frame": FrameTaken,
    "audio": AudioWritten,
    "paused": Paused,
    "resumed": Resumed,
    "marked": Marked,
    "clock": ClockRead,
    "missed": Missed,
    "stopped": Stopped,
}
_NAMES = {kind: name for name, kind in KINDS.items()}


def to_line(event: Event) -> str:
    """Return the event as one line of JSON, without the line's end."""
    values = {"kind": _NAMES[type(event)], **asdict(event)}
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def from_line(line: str) -> Event:
    """Return the event of a line; `EventError` says what is wrong with one that is none."""
    try:
        values = json.loads(line)
    except ValueError as error:
        raise EventError(f"no JSON: {error}") from None
    kind = values.get("kind") if isinstance(values, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise EventError("no object with a known kind")
    return _made(KINDS[values.pop("kind")], values)


def _made(kind: type[Event], values: Mapping[str, Any]) -> Event:
    known = {field.name: field for field in fields(kind)}
    if unknown := sorted(set(values) - set(known)):
        raise EventError(f"{_NAMES[kind]}: unknown {', '.join(unknown)}")
    made = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
    for name, value in made.items():
        if not _fits(str(known[name].type), value):
            raise EventError(f"{_NAMES[kind]}: {name} is {value!r}, not {known[name].type}")
    make: Callable[..., Event] = kind
    try:
        return make(**made)
    except TypeError as error:
        raise EventError(f"{_NAMES[kind]}: {error}") from None


def _fits(wanted: str, value: object) -> bool:
    match wanted:
        case "float":
            return (
                isinstance(value, (int, float))
                and not isinstance(value, bool)
                and abs(value) < 1e12
            )
        case "int":
            return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 31
        case "bool":
            return isinstance(value, bool)
        case "float | None":
            return value is None or _fits("float", value)
        case "bool | None":
            return value is None or isinstance(value, bool)
        case "Button":
            return value in ("left", "middle", "right", "back", "forward")
        case "tuple[int, int, int, int]":
            return (
                isinstance(value, tuple) and len(value) == 4 and all(_fits("int", n) for n in value)
            )
        case _:
            return isinstance(value, str)
