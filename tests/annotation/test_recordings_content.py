"""Files of a recording: hours of events in little memory, and every line that lies named."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path

import pytest

from annotation.recordings import checks, content, spool
from annotation.recordings.errors import BadContent
from tests.annotation.recorded import click, lines
from trajectory.recording import ClockRead, FrameTaken, Missed, Moved, to_line


def test_two_hours_of_events_take_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with path.open("w") as file:
        for n in range(14_400):  # two movements a second
            file.write(to_line(Moved(n / 2, n % 1000, 5)) + "\n")
            if n % 40 == 0:
                file.write(to_line(FrameTaken(n / 2, n / 2, f"{n % 600:064x}", 10, 10)) + "\n")
    tracemalloc.start()
    found = content.events(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.count == 14_760 and found.ended == 7199.5
    assert peak < 400_000 < path.stat().st_size


def test_a_large_file_is_spooled_in_little_memory(settings: object, tmp_path: Path) -> None:
    settings.RECORDING_SPOOL = tmp_path  # type: ignore[attr-defined]

    class Endless(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            return bytes(size)

    tracemalloc.start()
    length = spool.append("r", "s", offset=0, source=Endless(), limit=64 << 20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert length == spool.length("r", "s") == 64 << 20
    assert peak < 4 << 20


def test_what_broke_off_in_the_middle_of_a_part_goes_on_after_it(
    settings: object, tmp_path: Path
) -> None:
    settings.RECORDING_SPOOL = tmp_path  # type: ignore[attr-defined]

    class Breaks(io.RawIOBase):
        left = 3

        def read(self, size: int = -1) -> bytes:
            self.left -= 1
            if not self.left:
                raise ConnectionError("gone")
            return bytes(size)

    with pytest.raises(ConnectionError):
        spool.append("r", "s", offset=0, source=Breaks(), limit=10 << 20)
    assert (
        spool.append("r", "s", offset=spool.length("r", "s"), source=io.BytesIO(b"on"), limit=10)
        == 2
    )


def test_a_wall_clock_that_was_set_is_no_jump_of_the_recorders(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    events = [ClockRead(0, 1e9), ClockRead(60, 1e9 + 3660), Missed(9000, 60, "all", "suspended")]
    path.write_text("".join(to_line(event) + "\n" for event in events))
    assert content.events(path).drift_s == 3600


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"began": "soon"}, "began"), ({"began": float("nan")}, "nan"), ({"ended": 1.0}, "order"),
        ({"action": None}, "action"), ({"began": 1e9, "ended": 1e9}, "at most a day"),
        ({"action": {"type": "type", "text": "a\0b"}}, "U\\+0000"), ({"window": {"\0": 1}}, "U\\+0000"),
        ({"element": {"name": "\ud83d"}}, "surrogate"), ({"action": {"x": [float("inf")]}}, "inf"),
    ],
)  # fmt: skip
def test_a_step_that_lies_is_named_by_its_line(
    tmp_path: Path, change: dict[str, object], named: str
) -> None:
    path = tmp_path / "steps.jsonl"
    good = {"began": 2.0, "ended": 3.0, "action": click(1, 1), "frame": ""}
    path.write_bytes(lines([good, {**good, **change}]))
    with pytest.raises(BadContent, match=f"line 2.*{named}"):
        content.steps(path)
    path.write_bytes(b"{" * 100_000)
    with pytest.raises(BadContent, match="line 1"):
        content.steps(path)


def test_a_drag_that_leaves_the_picture_is_a_problem() -> None:
    drag = {"type": "drag", "path": [[5, 5], [500, 5]], "button": "left"}
    assert "outside" in checks.problem(drag, frame=(100, 100), element=None)
    assert checks.problem(drag, frame=(600, 100), element=None) == ""
    assert checks.fingerprint(1, "t", [drag]) != checks.fingerprint(2, "t", [drag])
