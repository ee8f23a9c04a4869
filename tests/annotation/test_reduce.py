"""What a hand did becomes exactly the actions that it did."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation.hand.reduce import Event, reduce
from trajectory import (
    Action,
    Click,
    Drag,
    Hotkey,
    KeyDown,
    KeyUp,
    LongPress,
    Scroll,
    Type,
)


def actions(hand: Any) -> list[Action]:
    reduction = reduce(hand.events)
    assert reduction.dropped == ()
    return [step.action for step in reduction.steps]


def test_a_session_of_known_actions_gives_as_many_steps_with_exact_coordinates(
    hand: Any,
) -> None:
    work = hand().click(640, 360).wait(1).click(12, 700, bit=2).wait(1).type("Hello, Wörld 日本")
    work.tap(hand.ENTER).wait(1).chord(hand.CTRL, ord("s")).drag((10, 10), (50, 60), (200, 300))
    work.move(400, 400).notch(4).notch(4).notch(4).wait(1).click(5, 5).wait(0.1).click(6, 6)
    assert actions(work) == [
        Click(640, 360),
        Click(12, 700, "right"),
        Type("Hello, Wörld 日本"),
        Hotkey(("enter",)),
        Hotkey(("ctrl", "s")),
        Drag(((10, 10), (50, 60), (200, 300))),
        Scroll(400, 400, 0, 3),
        Click(5, 5, count=2),
    ]


def test_every_step_carries_the_picture_from_before_its_first_press(hand: Any) -> None:
    work = hand().click(100, 100).wait(1).type("abc")
    first, second = reduce(work.events).steps
    assert first.observation and second.observation
    assert first.observation["screenshot"] == "frame-2"  # the press, not the release
    assert second.observation == {"screenshot": "frame-4", "width": 1280, "height": 720}


def test_an_event_without_a_picture_takes_the_one_before(hand: Any) -> None:
    events = [
        Event(seq=1, at=0.0, x=5, y=5, buttons=0, observation={"screenshot": "a"}),
        Event(seq=2, at=0.1, x=5, y=5, buttons=1),
        Event(seq=3, at=0.2, x=5, y=5, buttons=0),
    ]
    assert reduce(events).steps[0].observation == {"screenshot": "a"}


def test_clicks_join_only_when_near_and_quick(hand: Any) -> None:
    assert actions(hand().click(5, 5).click(5, 5).click(6, 5)) == [Click(5, 5, count=3)]
    assert actions(hand().click(5, 5).wait(0.5).click(5, 5)) == [
        Click(5, 5),
        Click(5, 5),
    ]
    assert actions(hand().click(5, 5).click(9, 5)) == [Click(5, 5), Click(9, 5)]
    assert actions(hand().click(5, 5).click(5, 5, bit=2)) == [
        Click(5, 5),
        Click(5, 5, "right"),
    ]
    assert len(actions(hand().click(5, 5).type("a").click(5, 5))) == 3


def test_a_small_slip_is_a_click_and_more_is_a_drag(hand: Any) -> None:
    assert actions(hand().drag((10, 10), (16, 10))) == [Click(10, 10)]
    assert actions(hand().drag((10, 10), (17, 10))) == [Drag(((10, 10), (17, 10)))]
    there_and_back = hand().drag((10, 10), (90, 10), (10, 10))
    assert actions(there_and_back) == [Drag(((10, 10), (90, 10), (10, 10)))]


def test_a_long_path_is_thinned_and_keeps_its_ends(hand: Any) -> None:
    (drag,) = actions(hand().drag(*[(x, x // 2) for x in range(1000)]))
    assert isinstance(drag, Drag)
    assert (len(drag.path), drag.path[0], drag.path[-1]) == (200, (0, 0), (999, 499))


def test_holding_still_is_a_long_press(hand: Any) -> None:
    (press,) = actions(hand().click(8, 9, held=1.19))
    assert press == LongPress(8, 9, 1200)


def test_scrolls_join_by_axis_direction_and_time(hand: Any) -> None:
    work = hand().move(3, 4).notch(4).notch(4).notch(3).notch(6).wait(1.1).notch(6)
    assert actions(work) == [
        Scroll(3, 4, 0, 2),
        Scroll(3, 4, 0, -1),
        Scroll(3, 4, 1, 0),
        Scroll(3, 4, 1, 0),
    ]


def test_typing_breaks_on_a_pause_a_click_a_hotkey_and_enter(hand: Any) -> None:
    work = hand().type("ab").wait(2.1).type("cd").click(1, 1).type("e").tap(hand.ENTER).type("f")
    assert actions(work) == [
        Type("ab"),
        Type("cd"),
        Click(1, 1),
        Type("e"),
        Hotkey(("enter",)),
        Type("f"),
    ]


def test_a_typing_error_taken_back_is_not_in_the_text(hand: Any) -> None:
    assert actions(hand().type("helo").tap(hand.BACKSPACE).type("lo")) == [Type("hello")]
    assert actions(hand().tap(hand.BACKSPACE)) == [Hotkey(("backspace",))]


def test_modifiers_go_with_what_they_modify(hand: Any) -> None:
    work = hand().key(hand.CTRL, True).click(7, 8).key(hand.CTRL, False)
    assert actions(work) == [Click(7, 8, modifiers=("ctrl",))]
    assert actions(hand().chord(hand.CTRL, hand.SHIFT, ord("T"))) == [
        Hotkey(("ctrl", "shift", "t"))
    ]
    assert actions(hand().chord(hand.META)) == [Hotkey(("meta",))]
    assert actions(hand().chord(hand.SHIFT)) == []
    assert actions(hand().chord(hand.ALT, 0xFFBE + 3)) == [Hotkey(("alt", "f4"))]
    zoom = hand().move(1, 2).key(hand.CTRL, True).notch(3).key(hand.CTRL, False)
    assert actions(zoom) == [KeyDown("ctrl"), Scroll(1, 2, 0, -1), KeyUp("ctrl")]


def test_a_press_without_release_ends_with_the_takeover(hand: Any) -> None:
    assert actions(hand().move(4, 4).move(4, 4, 1)) == [Click(4, 4)]


def test_an_unknown_key_is_named(hand: Any) -> None:
    reduction = reduce(hand().tap(0x1008FF11).events)
    assert reduction.steps == ()
    assert "0x1008ff11" in reduction.dropped[0]


@given(
    st.lists(
        st.tuples(st.integers(0, 1279), st.integers(0, 719), st.sampled_from([0, 1, 2])),
        max_size=30,
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_n_separate_clicks_are_n_steps(hand: Any, places: list[tuple[int, int, int]]) -> None:
    work = hand()
    for x, y, bit in places:
        work.click(x, y, bit=bit).wait(1)
    names = {0: "left", 1: "middle", 2: "right"}
    assert actions(work) == [Click(x, y, names[bit]) for x, y, bit in places]
