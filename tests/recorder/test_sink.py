"""The gate: what a pause, a stop of the recorder and a slow disk let pass, and what they don't."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from recorder.capture.clock import Clock
from recorder.capture.sink import Sink
from recorder.spool import Folder, Spool, events
from recorder.spool.folder import write_durably
from tests.recorder.test_spool import HEAD
from trajectory.recording import FrameTaken, KeyPressed, Missed, Moved, Paused, Resumed, Stopped


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder.make(tmp_path, HEAD)


@pytest.fixture
def sink(folder: Folder) -> Iterator[Sink]:
    spool = Spool(folder, on_trouble=print)
    yield Sink(spool, folder, Clock())
    spool.close()


def key(sink: Sink, name: str) -> bool:
    return sink.put(KeyPressed(sink.clock.now(), name, name))


def test_a_pause_that_begins_while_the_recorder_looks_anew_is_not_ended_by_it(sink: Sink) -> None:
    assert key(sink, "a")
    for pause_first in (True, False):
        if pause_first:
            assert sink.shut()
        sink.stand(sink.clock.now())
        assert not key(sink, "b")
        if not pause_first:
            assert sink.shut()
        sink.go_on(0.0, "the recorder stood still")
        assert not key(sink, "c")
        assert sink.reopen() and key(sink, "d")


def test_what_says_how_to_read_the_others_is_written_however_slow_the_disk(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, goes = threading.Event(), threading.Event()

    def slow(path: Path, data: bytes) -> None:
        began.set()
        assert goes.wait(60)
        write_durably(path, data)

    monkeypatch.setattr("recorder.spool.writing.write_durably", slow)
    monkeypatch.setattr("recorder.spool.writing._QUEUE", 3)
    spool = Spool(folder, on_trouble=print)
    spool.put(FrameTaken(1.0, 0.9, "ab", 2, 2), folder.frames / "ab.png", b"png")
    assert began.wait(60)
    for n in range(20):
        spool.put(Moved(2.0 + n, 1, 1))
    spool.put(Paused(30.0))
    spool.put(Resumed(31.0))
    spool.put(Stopped(32.0))
    goes.set()
    spool.close()
    found = list(events(folder))
    assert [type(e) for e in found if e.t >= 30] == [Paused, Resumed, Stopped]
    (missed,) = (e for e in found if isinstance(e, Missed))
    assert missed.what == "all" and missed.t == 21.0 and "slower" in missed.cause


def test_pictures_that_a_slow_disk_did_not_take_are_missed_alone(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recorder.spool.writing._WAITING_BYTES", 2)
    spool = Spool(folder, on_trouble=print)
    spool.put(FrameTaken(1.0, 0.9, "ab", 2, 2), folder.frames / "ab.png", b"png")
    spool.put(KeyPressed(2.0, "a", "a"))
    spool.close()
    assert [e for e in events(folder) if not isinstance(e, Missed)] == [KeyPressed(2.0, "a", "a")]
    assert [e.what for e in events(folder) if isinstance(e, Missed)] == ["frames"]


def test_a_full_disk_is_told_once_and_again_after_each_pause(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    troubles: list[str] = []

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    spool = Spool(folder, on_trouble=troubles.append)
    with monkeypatch.context() as patched:
        patched.setattr("recorder.spool.writing.os.write", full)
        for n in range(50):
            spool.put(Moved(float(n), 1, 1))
        spool.put(Resumed(60.0))
        spool.put(Moved(61.0, 1, 1))
        spool.close()
    assert len(troubles) == 2
