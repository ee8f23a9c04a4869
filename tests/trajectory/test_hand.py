"""Raw events become exactly the actions that were meant, one by one, in memory that does not grow."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.reduction import score
from benchmarks.reduction_events import generate
from trajectory import (
    Action,
    Click,
    Drag,
    Hotkey,
    KeyDown,
    KeyUp,
    LongPress,
    Move,
    Scroll,
    Type,
    Wait,
)
from trajectory import recording as rec
from trajectory.hand import Hand, Limits, reduce


def actions(*events: rec.Event, limits: Limits | None = None) -> list[Action]:
    return [step.action for step in reduce(events, limits)]


def click(t: float, x: int, y: int, held: float = 0.05) -> list[rec.Event]:
    return [rec.Pressed(t, x, y, "left"), rec.Released(t + held, x, y, "left")]


def tap(t: float, key: str, text: str = "") -> list[rec.Event]:
    return [rec.KeyPressed(t, key, text), rec.KeyReleased(t + 0.03, key)]


@pytest.mark.parametrize("seed", [7])
def test_of_two_thousand_actions_with_jitter_nearly_all_are_exact(seed: int) -> None:
    events, gestures = generate(2000, seed)
    exact, wrong = score(gestures, [(step.began, step.action) for step in reduce(events)])
    meant = sum(len(gesture.actions) for gesture in gestures)
    assert sum(exact.values()) / meant >= 0.995, wrong[:3]


def test_what_is_kept_does_not_grow_and_steps_come_in_order() -> None:
    events, _ = generate(3000, 3)
    hand, began, most = Hand(), [], 0
    for event in events:
        began += [step.began for step in hand.take(event)]
        most = max(most, len(hand.moments()))
    began += [step.began for step in hand.close()]
    assert began == sorted(began)
    assert most < 40


def test_a_button_or_modifier_whose_release_was_lost_holds_nothing_back_for_ever() -> None:
    events: list[rec.Event] = [rec.KeyPressed(0.0, "shift"), rec.Pressed(0.1, 5, 5, "right")]
    hand, came = Hand(), 0
    for n in range(200):
        events += click(1.0 + 2 * n, 9, 9)
    for event in events:
        came += len(hand.take(event))
    assert came > 190


def test_thresholds_follow_the_scale_of_the_screen() -> None:
    slip = [
        rec.Pressed(1, 10, 10, "left"),
        rec.Moved(1.1, 20, 10),
        rec.Released(1.2, 20, 10, "left"),
    ]
    assert actions(*slip) == [Drag(((10, 10), (20, 10)))]
    assert actions(*slip, limits=Limits().scaled(2)) == [Click(10, 10)]
    twice = [*click(1, 10, 10), *click(1.3, 16, 10)]
    assert len(actions(*twice)) == 2
    assert actions(*twice, limits=Limits().scaled(2)) == [Click(10, 10, count=2)]


def test_keys_that_join_a_drag_before_its_end_decide_what_it_does() -> None:
    drag = [
        rec.Pressed(1, 10, 10, "left"), rec.Moved(1.1, 90, 10), rec.KeyPressed(1.2, "ctrl"),
        rec.Released(1.3, 90, 10, "left"), rec.KeyReleased(1.4, "ctrl"),
    ]  # fmt: skip
    assert actions(*drag) == [KeyDown("ctrl"), Drag(((10, 10), (90, 10))), KeyUp("ctrl")]


def test_a_step_begins_with_its_first_press() -> None:
    steps = list(reduce([
        rec.KeyPressed(1.0, "ctrl"), *tap(1.2, "c"), *tap(1.6, "v"), rec.KeyReleased(1.7, "ctrl"),
        *click(3.0, 5, 5), *click(3.2, 5, 5), *tap(5.0, "a", "a"), *tap(5.4, "b", "b"),
        rec.Scrolled(8.0, 5, 5, 0, 1), rec.Scrolled(8.3, 5, 5, 0, 1),
    ]))  # fmt: skip
    assert [(s.began, s.action) for s in steps] == [
        (1.0, Hotkey(("ctrl", "c"))),
        (1.6, Hotkey(("ctrl", "v"))),
        (3.0, Click(5, 5, count=2)),
        (5.0, Type("ab")),
        (8.0, Scroll(5, 5, 0, 2)),
    ]


def test_enter_ends_a_text_and_backspace_takes_back_what_was_typed() -> None:
    typed = [*tap(1, "h", "h"), *tap(1.2, "o", "o"), *tap(1.3, "backspace"), *tap(1.4, "i", "i")]
    assert actions(*typed, *tap(1.6, "enter", "\r"), *tap(1.8, "backspace")) == [
        Type("hi"),
        Hotkey(("enter",)),
        Hotkey(("backspace",)),
    ]


def test_altgr_types_and_alt_with_a_letter_does_not() -> None:
    held = [rec.KeyPressed(1, "ctrl"), rec.KeyPressed(1.01, "alt")]
    assert actions(*held, *tap(1.1, "q", "@")) == [Type("@")]
    assert actions(*held, *tap(1.1, "t", "t")) == [Hotkey(("ctrl", "alt", "t"))]
    assert actions(rec.KeyPressed(1, "alt"), *tap(1.1, "l", "λ")) == [Type("λ")]
    assert actions(rec.KeyPressed(1, "alt"), *tap(1.1, "f", "f")) == [Hotkey(("alt", "f"))]


def test_a_composition_that_is_given_up_types_nothing_and_the_next_text_is_whole() -> None:
    given_up = [*tap(1, "n"), *tap(1.1, "i"), *tap(1.2, "escape")]
    assert actions(*given_up, *tap(1.5, "x", "x")) == [Type("x")]
    taken_back = [*tap(1, "n"), *tap(1.1, "backspace"), *tap(1.2, "enter")]
    assert actions(*taken_back) == [Hotkey(("enter",))]


def test_text_that_comes_without_keys_is_typed_text() -> None:
    assert actions(rec.Committed(1.0, "👩‍💻"), rec.Committed(1.5, "日本")) == [Type("👩‍💻日本")]


def test_a_focus_that_moves_by_itself_breaks_the_text_and_one_that_was_moved_does_not() -> None:
    def field(t: float, name: str) -> rec.ElementSeen:
        return rec.ElementSeen(t, "text", name, (0, 0, 90, 20), focused=True, password=False)

    code = [field(0.1, "first"), *tap(2, "1", "1"), field(2.1, "second"), *tap(2.2, "2", "2")]
    assert actions(*code) == [Type("1"), Type("2")]
    late = [field(0.1, "first"), *click(2, 5, 5), *tap(2.3, "1", "1"), field(2.4, "second")]
    assert actions(*late, *tap(2.5, "2", "2")) == [Click(5, 5), Type("12")]


def test_a_pause_ends_what_was_going_on() -> None:
    assert actions(*tap(1, "a", "a"), rec.Paused(1.2), rec.Resumed(1.4), *tap(1.5, "b", "b")) == [
        Type("a"),
        Type("b"),
    ]


def test_what_is_held_at_a_pause_is_dropped() -> None:
    pause: list[rec.Event] = [rec.Paused(2), rec.Resumed(3)]
    button: list[rec.Event] = [rec.Pressed(1, 10, 10, "left"), rec.Moved(1.5, 90, 10)]
    assert (
        actions(*button, *pause, rec.Moved(3.1, 200, 10), rec.Released(3.2, 200, 10, "left")) == []
    )
    assert actions(*button[:1], *pause, rec.Released(3.2, 10, 10, "left")) == []
    assert actions(rec.KeyPressed(1, "alt"), *pause, rec.KeyReleased(3.2, "alt")) == []
    assert actions(rec.KeyPressed(1, "ctrl"), *pause, *tap(3.2, "c", "c")) == [Type("c")]
    tabs = [rec.KeyPressed(1, "alt"), *tap(1.2, "tab"), *pause, rec.KeyReleased(3.2, "alt")]
    assert actions(*tabs) == []
    hand = Hand()
    for event in (*button, *pause):
        hand.take(event)
    assert hand.dropped == {"left was cut by a pause": 1}
    # The clicks and the text that were whole before it stay.
    assert actions(*click(1, 5, 5), *pause, *click(3.1, 5, 5)) == [Click(5, 5), Click(5, 5)]


def test_the_hand_waits_only_for_what_it_acted_after() -> None:
    def frame(t: float, picture: str) -> rec.FrameTaken:
        return rec.FrameTaken(t, t - 0.02, picture, 9, 9)

    pictures = [frame(0.5, "a"), *click(1, 5, 5), frame(1.3, "b"), frame(6, "c")]
    assert actions(*pictures) == [Click(5, 5)]
    assert [s.action for s in reduce([*pictures, *tap(8, "f5")])][1:] == [
        Wait(4950),
        Hotkey(("f5",)),
    ]
    over = [frame(0.5, "a"), rec.Moved(3, 50, 50), frame(3.4, "b")]
    assert actions(*over, *click(5, 50, 50)) == [Click(50, 50)]
    assert actions(*over, *click(5, 50, 90)) == [Move(50, 50), Click(50, 90)]


def test_holding_still_with_another_button_is_a_click() -> None:
    held: list[Any] = [rec.Pressed(1, 5, 5, "left"), rec.Released(1.8, 5, 5, "left")]
    assert actions(*held) == [LongPress(5, 5, 800)]
    held = [rec.Pressed(1, 5, 5, "right"), rec.Released(3, 5, 5, "right")]
    assert actions(*held) == [Click(5, 5, "right")]


_T = st.floats(0, 30, allow_nan=False)
_P = st.integers(-20, 40)
_B = st.sampled_from(["left", "right"])
_K = st.sampled_from(
    ["a", "B", "enter", "ctrl", "alt", "shift", "tab", "backspace", "", "capslock"]
)
_ANY = st.one_of(
    st.builds(rec.Moved, _T, _P, _P), st.builds(rec.Pressed, _T, _P, _P, _B),
    st.builds(rec.Released, _T, _P, _P, _B),
    st.builds(rec.Scrolled, _T, _P, _P, st.integers(-2, 2), st.integers(-2, 2)),
    st.builds(rec.KeyPressed, _T, _K, st.sampled_from(["", "x", "\r", "ß"])),
    st.builds(rec.KeyReleased, _T, _K), st.builds(rec.Committed, _T, st.text(max_size=3)),
    st.builds(rec.FrameTaken, _T, _T, st.sampled_from(["a", "b"]), _P, _P),
    st.builds(rec.Paused, _T), st.builds(rec.WindowChanged, _T, st.text(max_size=2), st.text(max_size=2)),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(_ANY, max_size=60))
def test_whatever_comes_the_steps_are_whole_and_in_order(events: list[rec.Event]) -> None:
    steps = list(reduce(sorted(events, key=lambda event: event.t)))
    began = [step.began for step in steps]
    assert began == sorted(began)
    assert all(step.began <= step.ended for step in steps)
    for step in steps:
        match step.action:
            case Drag(path=path):
                assert len(path) >= 2
            case Type(text=text):
                assert text
            case Hotkey(keys=keys):
                assert keys and all(keys)
            case _:
                pass
