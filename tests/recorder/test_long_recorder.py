"""Eight times the length, the same memory: every stage of the recorder's side, each a process of its own."""

from __future__ import annotations

from pathlib import Path

from benchmarks.long_made import write
from benchmarks.long_recording import stages

MINUTES = 2.0
NAMES = ("read", "reduce", "redact", "review", "confirm")
# What may grow, in bytes: a step's line and a file's name. One picture taken apart has 2.6 MiB, the
# events of the longer one have 2 MiB: neither may stay.
STEP, FILE, ROOM = 8_000, 2_000, 1 << 20


def test_two_hours_would_take_no_more_memory_than_some_minutes(tmp_path: Path) -> None:
    folders = [write(tmp_path, minutes, voice=False).path for minutes in (MINUTES, 8 * MINUTES)]
    few, many = (stages(NAMES, folder) for folder in folders)
    files = sum(1 for _ in (folders[1] / "upload").rglob("*"))
    steps = many["review"]["count"]
    allowed = {
        "review": steps * STEP,
        "redact": files * FILE,
        "confirm": files * FILE + steps * STEP,
    }
    for name in NAMES:
        assert many[name]["count"] > 6 * few[name]["count"]
        grew = [run[name]["peak"] - run[name]["before"] for run in (few, many)]
        assert grew[1] < grew[0] + allowed.get(name, 0) + ROOM, name
