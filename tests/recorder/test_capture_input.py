"""The hand on a real display: what is recorded is what was done."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.recorder.conftest import Hand, Recorded, needs_x
from trajectory.recording import (
    Committed,
    Event,
    KeyPressed,
    KeyReleased,
    Marked,
    Moved,
    Pressed,
    Released,
    Scrolled,
)

pytestmark = needs_x
Record = Callable[..., Recorded]


def typed(events: list[Event]) -> str:
    """Return the text of keys and of what input methods committed, in its order."""
    return "".join(e.text for e in events if isinstance(e, KeyPressed | Committed))


@pytest.fixture
def layout(screen: str) -> Iterator[Callable[..., None]]:
    def switch(*words: str) -> None:
        subprocess.run(["setxkbmap", "-display", screen, *words], check=True, timeout=10)

    yield switch
    switch("us")


def test_typed_text_is_what_was_typed(record: Record, hand: Hand, terminal: str) -> None:
    recorded = record()
    hand("type", "--delay", "1", "Hello, World 3! (é ß 你好)")

    def names(events: list[Event], kind: type[KeyPressed | KeyReleased]) -> list[str]:
        return sorted(e.key for e in events if isinstance(e, kind))

    recorded.wait(lambda e: typed(e).endswith(")"), "the last key")
    events = recorded.wait(
        lambda e: names(e, KeyPressed) == names(e, KeyReleased), "each key to come up"
    )
    assert typed(events) == "Hello, World 3! (é ß 你好)"
    assert "W" not in names(events, KeyPressed) and "w" in names(events, KeyPressed)


def test_a_shortcut_types_nothing(record: Record, hand: Hand, terminal: str) -> None:
    recorded = record()
    hand("key", "ctrl+shift+t", "Return", "F5")
    events = recorded.wait(
        lambda e: any(k.key == "f5" for k in e if isinstance(k, KeyReleased)), "the last key"
    )
    assert [e.key for e in events if isinstance(e, KeyPressed)] == [
        "ctrl", "shift", "t", "enter", "f5",
    ]  # fmt: skip
    assert typed(events) == ""


def test_dead_keys_commit_one_character(
    record: Record, hand: Hand, terminal: str, layout: Callable[..., None]
) -> None:
    layout("us", "-variant", "intl")
    recorded = record()
    hand("key", "dead_acute", "e", "a", "dead_diaeresis", "u")
    events = recorded.wait(lambda e: len(typed(e)) == 3, "three characters")
    assert typed(events) == "éaü"
    assert [e.text for e in events if isinstance(e, Committed)] == ["é", "ü"]


def test_another_layout_is_seen_while_recording(
    record: Record, hand: Hand, terminal: str, layout: Callable[..., None]
) -> None:
    recorded = record()
    hand("key", "a")
    recorded.wait(lambda e: typed(e) == "a", "the first key")
    layout("us,ru", "-option", "grp:toggle")
    hand("key", "ISO_Next_Group")
    hand("key", "Cyrillic_ef")
    events = recorded.wait(lambda e: len(typed(e)) >= 2, "a key of the new layout")
    assert typed(events) == "aф"


def test_a_held_key_repeats(record: Record, hand: Hand, terminal: str) -> None:
    recorded = record()
    hand("keydown", "x")
    try:
        recorded.wait(lambda e: typed(e).count("x") >= 3, "repeats")
    finally:
        hand("keyup", "x")
    events = recorded.wait(
        lambda e: any(isinstance(k, KeyReleased) for k in e), "the end of the key"
    )
    keys = [e for e in events if isinstance(e, KeyPressed)]
    assert not keys[0].repeat
    assert all(key.repeat for key in keys[1:])
    assert len([e for e in events if isinstance(e, KeyReleased)]) == 1


def test_the_mouse_is_recorded_where_it_was(record: Record, hand: Hand, terminal: str) -> None:
    recorded = record()
    hand(
        *("mousemove", "100", "120", "mousedown", "1", "mousemove", "300", "200", "mouseup", "1"),
        *("click", "3", "click", "4", "click", "7", "mousemove", "500", "400"),
        *("key", "Escape"),
    )
    events = recorded.wait(lambda e: any(isinstance(k, KeyReleased) for k in e), "the key")
    assert [(e.x, e.y, e.button) for e in events if isinstance(e, Pressed)] == [
        (100, 120, "left"), (300, 200, "right"),
    ]  # fmt: skip
    assert [(e.x, e.y, e.button) for e in events if isinstance(e, Released)] == [
        (300, 200, "left"), (300, 200, "right"),
    ]  # fmt: skip
    assert [(e.dx, e.dy) for e in events if isinstance(e, Scrolled)] == [(0, -1), (1, 0)]
    assert [(e.x, e.y) for e in events if isinstance(e, Moved)][-1] == (500, 400)
    times = [e.t for e in events if not isinstance(e, KeyReleased)]
    assert times == sorted(times)


def test_a_hotkey_is_no_key_of_the_recording(record: Record, hand: Hand, terminal: str) -> None:
    recorded = record()
    hand("key", "ctrl+alt+m", "z")
    events = recorded.wait(lambda e: typed(e) == "z", "the key after it")
    assert len([e for e in events if isinstance(e, Marked)]) == 1
    assert "m" not in [e.key for e in events if isinstance(e, KeyPressed | KeyReleased)]
