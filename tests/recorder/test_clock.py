"""One clock: the display's stamps are read by it, and a computer that slept is no gap in time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from recorder import session
from recorder.capture import clock
from recorder.capture.clock import Clock, ServerTime
from tests.recorder.conftest import Recorded, needs_x
from trajectory.recording import ClockRead, Missed


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
    assert server.seconds(int((now + 77.25) * 1000)) == pytest.approx(now, abs=0.003)


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
    recorded = record()
    real = clock._asleep()
    monkeypatch.setattr(clock, "_asleep", lambda: real + 42.0)
    events = recorded.wait(lambda e: any(isinstance(m, Missed) for m in e), "the hole")
    hole = next(e for e in events if isinstance(e, Missed))
    assert hole.cause == "the computer slept for 42 s"
    recorded.wait(lambda e: sum(isinstance(c, ClockRead) for c in e) >= 2, "the clock after it")
