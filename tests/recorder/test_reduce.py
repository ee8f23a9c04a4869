"""A step carries what was on the screen before its effect, and never the effect itself."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.reduction_events import generate
from recorder.reduce import steps
from trajectory import recording as rec


def frame(t: float, took: float = 0.03) -> rec.FrameTaken:
    """A picture that carries its time: its name says when its grab had ended."""
    return rec.FrameTaken(t, t - took, f"{t:.6f}", 1280, 720)


def tap(t: float, key: str) -> list[rec.Event]:
    return [rec.KeyPressed(t, key, key), rec.KeyReleased(t + 0.03, key)]


def test_the_picture_of_a_step_is_from_before_its_first_press() -> None:
    events: list[rec.Event] = [
        frame(0.5), rec.Pressed(1, 5, 5, "left"), frame(1.02), rec.Released(1.05, 5, 5, "left"),
        frame(1.1), rec.Pressed(1.2, 5, 5, "left"), frame(1.22), rec.Released(1.25, 5, 5, "left"),
        frame(2.0), rec.Pressed(2.2, 9, 9, "left"), rec.Moved(2.3, 90, 9), frame(2.35),
        rec.Released(2.5, 90, 9, "left"), frame(3.0), *tap(3.2, "a"), frame(3.3), *tap(3.4, "b"),
        frame(3.5),
    ]  # fmt: skip
    made = list(steps(events))
    assert [(s["action"]["type"], s["frame"]) for s in made] == [
        ("click", "0.500000"),
        ("drag", "2.000000"),
        ("type", "3.000000"),
    ]
    assert made[0]["action"]["count"] == 2
    assert [s["frame_gap_ms"] for s in made] == [500, 200, 200]


def test_a_picture_that_ended_within_the_guard_may_show_the_effect_already() -> None:
    events = [
        frame(0.5),
        frame(0.99),
        rec.Pressed(1, 5, 5, "left"),
        rec.Released(1.1, 5, 5, "left"),
    ]
    assert next(steps(events))["frame"] == "0.500000"


def test_a_picture_that_was_told_again_needs_no_guard() -> None:
    again = [rec.FrameTaken(t, t, "0.990000", 1280, 720) for t in (0.998, 1.002)]
    press = [rec.Pressed(1, 5, 5, "left"), rec.Released(1.1, 5, 5, "left")]
    assert next(steps([frame(0.5), frame(0.99), again[0], *press]))["frame"] == "0.990000"
    assert (
        next(steps([frame(0.5), frame(0.99), press[0], again[1], press[1]]))["frame"] == "0.500000"
    )


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.04, 0.3))
def test_no_step_shows_its_effect_and_none_an_older_picture_than_it_must(
    seed: int, every: float
) -> None:
    events, _ = generate(60, seed)
    events = [event for event in events if not isinstance(event, rec.FrameTaken)]
    taken = [frame(n * every) for n in range(1, int(events[-1].t / every))]
    pauses = [e.t for e in events if isinstance(e, rec.Paused)]
    resumed = [e.t for e in events if isinstance(e, rec.Resumed)]
    dark = list(zip(pauses, resumed, strict=True))
    taken = [f for f in taken if not any(a <= f.t and f.began <= b for a, b in dark)]
    times = [f.t for f in taken]
    for step in steps(sorted([*events, *taken], key=lambda e: e.t)):
        shown = [t for t in times if t <= step["began"] - 0.02]
        last_dark = max((b for _, b in dark if b <= step["began"]), default=0.0)
        if not shown or shown[-1] < last_dark:
            assert step["frame"] == ""
            continue
        assert step["frame"] == f"{shown[-1]:.6f}"


def test_element_and_window_are_those_of_the_moment() -> None:
    events: list[rec.Event] = [
        rec.WindowChanged(0.1, "gedit", "one"), rec.ElementSeen(0.2, "button", "Save", (0, 0, 50, 20)),
        rec.ElementSeen(0.3, "text", "Body", (0, 50, 50, 20), focused=True, password=False),
        rec.Pressed(1, 5, 5, "left"), rec.ElementSeen(1.02, "dialog", "Save as", (0, 0, 500, 200)),
        rec.Released(1.05, 5, 5, "left"), rec.WindowChanged(1.1, "gedit", "Save as"),
        rec.Pressed(2, 300, 100, "left"), rec.Released(2.05, 300, 100, "left"), *tap(3.0, "x"),
    ]  # fmt: skip
    save, dialog, typed = steps(events)
    assert save["element"] == {"role": "button", "name": "Save", "bounds": [0, 0, 50, 20]}
    assert (save["window"]["title"], dialog["window"]["title"]) == ("one", "Save as")
    assert dialog["element"]["name"] == "Save as"
    assert typed["element"]["name"] == "Body"


def test_nothing_from_before_a_pause_is_shown_after_it() -> None:
    events = [
        frame(0.5),
        rec.Paused(1),
        rec.Resumed(9),
        *tap(9.5, "x"),
        frame(9.6),
        *tap(12.0, "y"),
    ]
    assert [s["frame"] for s in steps(events)] == ["", "9.600000"]


def long_recording(hours: float) -> Iterator[rec.Event]:
    """Hours of work with a picture each 0.1 s, clicks, and text that goes on and on."""
    t, n = 0.0, 0
    while t < hours * 3600:
        t, n = t + 0.1, n + 1
        yield rec.FrameTaken(t, t - 0.01, f"{n:064x}", 9, 9)
        yield rec.ElementSeen(t + 0.01, "cell", f"{n}", (0, 0, 9, 9), focused=n % 50 == 0)
        if n % 600 < 300:
            yield rec.KeyPressed(t + 0.02, "a", "a")
            yield rec.KeyReleased(t + 0.05, "a")
        elif n % 10 == 0:
            yield rec.Pressed(t + 0.02, n % 900, 5, "left")
            yield rec.Released(t + 0.06, n % 900, 5, "left")


def test_two_hours_take_no_more_memory_than_some_minutes() -> None:
    def peak(hours: float) -> tuple[int, int]:
        tracemalloc.start()
        count = sum(1 for _ in steps(long_recording(hours)))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return count, most

    (few, small), (many, large) = peak(0.02), peak(0.1)
    assert many > 3 * few
    assert large < small * 1.5 + 50_000


def test_indices_count_and_times_rise() -> None:
    made = list(steps(generate(200, 5)[0]))
    assert [step["index"] for step in made] == list(range(len(made)))
    assert all(a["began"] <= b["began"] for a, b in pairwise(made))
