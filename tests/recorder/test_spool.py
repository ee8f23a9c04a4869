"""The disk of a recording: nothing that was written is lost, and what was not is told."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from recorder.spool import Consent, Folder, Head, Screen, Spool, SpoolError, Task, events, new_id
from tests.waiting import until
from trajectory.recording import Event, FrameTaken, KeyPressed, Missed, Moved, to_line

HEAD = Head(
    new_id(), "exploration", Task("7", "Titel", "Tu es"), Consent("2", 1.5), "linux-x11",
    Screen(1280, 720, ((0, 0, 1280, 720),), 1.0), 1_700_000_000.0, "0.1.0",
)  # fmt: skip

# Writes numbered events and says after each how many it handed over.
WRITER = """
import sys
from pathlib import Path
from recorder.spool import Folder, Spool
from trajectory.recording import Moved
spool = Spool(Folder(Path(sys.argv[1])), on_trouble=print)
for n in range(10**9):
    spool.put(Moved(n / 1000, n, n))
    if n % 100 == 0:
        print(n, flush=True)
        sys.stdin.readline()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder.make(tmp_path, HEAD)


def written(folder: Folder, *some: Event) -> None:
    spool = Spool(folder, on_trouble=print)
    for event in some:
        spool.put(event)
    spool.close()


def test_what_is_put_is_read_in_the_order_of_time(folder: Folder) -> None:
    picture = FrameTaken(1.0, 0.9, "ab", 2, 2)
    spool = Spool(folder, on_trouble=print)
    spool.put(KeyPressed(2.0, "ü", "ü"))
    spool.put(picture, folder.frames / "ab.png", b"png")
    spool.close()
    assert list(events(folder)) == [picture, KeyPressed(2.0, "ü", "ü")]
    assert (folder.frames / "ab.png").read_bytes() == b"png"
    assert folder.head() == HEAD
    assert {path.name for path in folder.path.iterdir()} == {
        "recording.json", "events.jsonl", "frames", "audio",
    }  # fmt: skip


@pytest.mark.parametrize("torn", ['{"kind":"mo', '{"kind":"moved"}\n', "\0" * 30 + "\n"])
def test_a_torn_last_line_is_left_out(folder: Folder, torn: str) -> None:
    written(folder, Moved(1.0, 2, 3))
    with folder.events.open("a") as out:
        out.write(torn)
    assert list(events(folder)) == [Moved(1.0, 2, 3)]


def test_a_broken_line_in_the_middle_is_named(folder: Folder) -> None:
    folder.events.write_text(f"{to_line(Moved(1, 2, 3))}\nnonsense\n{to_line(Moved(2, 2, 3))}\n")
    with pytest.raises(SpoolError, match=r"events\.jsonl: line 2: no JSON"):
        list(events(folder))


def test_a_line_without_end_is_not_read_into_memory(folder: Folder) -> None:
    folder.events.write_text("x" * (1 << 20) + "y\n")
    with pytest.raises(SpoolError, match="line 1 is longer"):
        list(events(folder))


def test_a_killed_recorder_leaves_all_but_the_last_moment(folder: Folder) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder.path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert writer.stdout is not None and writer.stdin is not None
    for _ in range(30):
        put = int(writer.stdout.readline())
        until(lambda: len(list(events(folder))) > put, "the writer's thread")  # noqa: B023
        writer.stdin.write("\n")
        writer.stdin.flush()
    writer.kill()
    writer.wait()
    found = list(events(folder))
    assert len(found) >= 2901
    assert [e.x for e in found if isinstance(e, Moved)] == list(range(len(found)))


def test_a_limit_of_the_disk_is_told_and_leaves_whole_lines(folder: Folder) -> None:
    code = """
import resource, sys
from pathlib import Path
from recorder.spool import Folder, Spool
from trajectory.recording import Moved
resource.setrlimit(resource.RLIMIT_FSIZE, (70000, 70000))
troubles = []
spool = Spool(Folder(Path(sys.argv[1])), on_trouble=troubles.append)
for n in range(3000):
    spool.put(Moved(n / 1000, n, n))
spool.close()
print(troubles[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder.path)], capture_output=True, text=True, timeout=60
    )
    assert "the disk takes nothing more (File too large)" in done.stdout, done.stderr
    found = [e.x for e in events(folder) if isinstance(e, Moved)]
    assert found == list(range(len(found))) and len(found) > 1000
    assert folder.events.stat().st_size <= 70000


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small tmpfs")
def test_a_full_disk_is_a_hole_in_the_recording(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "none", str(small)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    troubles: list[str] = []
    try:
        folder = Folder.make(small, HEAD)
        spool = Spool(folder, on_trouble=troubles.append)
        spool.put(Moved(1.0, 1, 1))
        for n in range(2, 6):
            picture = FrameTaken(float(n), n - 0.1, str(n), 2, 2)
            spool.put(picture, folder.frames / f"{n}.png", bytes(150_000))
        spool.put(Moved(9.0, 9, 9))
        spool.close()
        found = list(events(folder))
        kept = {e.sha256 for e in found if isinstance(e, FrameTaken)}
        assert kept == {path.stem for path in folder.frames.iterdir()} != {"2", "3", "4", "5"}
        hole = next(e for e in found if isinstance(e, Missed))
        assert "No space left" in hole.cause and hole.since <= hole.t <= 5.0
        assert found[-1] == Moved(9.0, 9, 9)
        assert troubles
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_two_hours_are_read_in_the_memory_of_a_minute(folder: Folder) -> None:
    count = 12_000
    with folder.events.open("w") as out:
        for n in range(count):
            out.write(to_line(Moved(n * 7200 / count, n, n)) + "\n")
    tracemalloc.start()
    try:
        assert sum(1 for _ in events(folder)) == count
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_recordings_are_found_by_the_beginning_of_their_id(tmp_path: Path, folder: Folder) -> None:
    assert Folder.all(tmp_path) == [folder]
    assert Folder.find(tmp_path, HEAD.id[:6]) == folder
    with pytest.raises(SpoolError, match="0 recordings"):
        Folder.find(tmp_path, "xyz")
    folder.delete()
    assert Folder.all(tmp_path) == []
