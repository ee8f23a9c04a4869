"""One clock: the display's stamps are read by it, and a computer that slept is no gap in time."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from recorder import session
from recorder.capture import clock
from recorder.capture.clock import Clock, ServerTime
from tests.recorder.conftest import Hand, Recorded, needs_x
from tests.waiting import until
from trajectory.recording import ClockRead, FrameTaken, KeyReleased, Missed, Paused, Resumed


def test_stamps_are_read_across_the_end_of_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = Clock()
    ahead = (1 << 32) - 5000

    def stamp() -> int:
        return (int(ours.now() * 1000) + ahead) % (1 << 32)

    server = ServerTime(ours, stamp)
    for seconds in (4.0, 6.0, 600.0):
        at = server.seconds(int(seconds * 1000 + ahead) % (1 << 32))
        assert at == pytest.approx(seconds, abs=0.002 + server.uncertain)


def test_a_display_whose_clock_runs_differently_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = Clock()
    drift = 0.0
    server = ServerTime(ours, lambda: int((ours.now() + 77 + drift) * 1000))
    drift = 0.25
    server.measure()
    assert server.skew == pytest.approx(-0.25, abs=0.002 + 2 * server.uncertain)
    now = ours.now()
    found = server.seconds(int((now + 77.25) * 1000))
    assert found == pytest.approx(now, abs=0.002 + server.uncertain)


def test_sleep_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asleep = 5.0
    monkeypatch.setattr(clock, "_asleep", lambda: asleep)
    ours = Clock()
    assert ours.slept() == 0.0
    asleep = 65.0
    assert ours.slept() == 60.0
    assert ours.slept() == 0.0


@needs_x
def test_a_suspended_computer_is_a_hole_in_the_recording(
    record: Callable[..., Recorded], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_TICK_S", 0.05)
    monkeypatch.setattr(session, "_COMPARE_S", 0.1)
    recorded = record()
    real = clock._asleep()
    monkeypatch.setattr(clock, "_asleep", lambda: real + 42.0)
    events = recorded.wait(lambda e: any(isinstance(m, Missed) for m in e), "the hole")
    hole = next(e for e in events if isinstance(e, Missed))
    assert hole.cause == "the computer slept for 42 s"
    recorded.wait(lambda e: sum(isinstance(c, ClockRead) for c in e) >= 2, "the clock after it")


@needs_x
def test_nothing_of_a_sleep_comes_late(
    record: Callable[..., Recorded], hand: Hand, terminal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = record()
    hand("key", "b")
    recorded.wait(lambda e: any(isinstance(k, KeyReleased) for k in e), "the key before it")
    monkeypatch.setattr(session, "STOOD_S", 0.0)  # the next beat is late
    recorded.wait(lambda e: any(isinstance(m, Missed) for m in e), "the hole")
    monkeypatch.undo()
    hole = max(e.t for e in recorded.of(Missed))

    def goes_on() -> bool:
        """A beat that was late before may still be looked after."""
        hand("key", "z")
        return sum(isinstance(k, KeyReleased) for k in recorded.events()) >= 2

    until(goes_on, "a key after it")
    events = recorded.stop()
    pictures = [e for e in events if isinstance(e, FrameTaken) and e.began >= hole]
    assert pictures, "all begins anew after a hole: the screen is looked at again"
    assert not any(isinstance(e, Paused | Resumed) for e in events)


@needs_x
def test_a_step_of_the_wall_clock_moves_no_event(
    record: Callable[..., Recorded], hand: Hand, terminal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_TICK_S", 0.05)
    monkeypatch.setattr(session, "_COMPARE_S", 0.1)
    recorded = record()
    hand("key", "a")
    recorded.wait(lambda e: any(isinstance(k, KeyReleased) for k in e), "a key before it")
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 86_400.0)
    seen = len(recorded.of(ClockRead))
    recorded.wait(lambda e: sum(isinstance(c, ClockRead) for c in e) > seen + 1, "the other day")
    hand("key", "z")
    recorded.wait(lambda e: sum(isinstance(k, KeyReleased) for k in e) == 2, "a key after it")
    events = recorded.stop()
    monkeypatch.undo()
    assert not any(isinstance(e, Missed) for e in events)
    first, *_, last = (e for e in events if isinstance(e, ClockRead))
    stepped = (last.wall - first.wall) - (last.t - first.t)
    assert stepped == pytest.approx(-86_400.0, abs=5.0)
    before, after = (e.t for e in events if isinstance(e, KeyReleased))
    assert 0.0 < before < after <= events[-1].t < 300.0
