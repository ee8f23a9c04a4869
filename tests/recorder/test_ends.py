"""How a recording may end: killed, on a full disk, told to, without its terminal, without its display."""

from __future__ import annotations

import hashlib
import os
import pty
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recorder.cli import main
from recorder.reduce import write_steps
from recorder.review import prepare
from recorder.spool import Folder, events
from tests.recorder.conftest import Hand, needs_x, program, x_server
from tests.recorder.made_recording import found_by
from tests.recorder.processes import Recorder
from tests.recorder.test_cli import Tandem, tandem
from tests.waiting import until
from trajectory.recording import (
    Event,
    FrameTaken,
    KeyPressed,
    KeyReleased,
    Missed,
    Paused,
    Pressed,
    Resumed,
    Stopped,
)

__all__ = ["tandem"]  # a fixture
pytestmark = needs_x


@pytest.fixture
def recorder(
    tmp_path: Path, tandem: Tandem, screen: str, monkeypatch: pytest.MonkeyPatch
) -> Recorder:
    recorder = Recorder(tmp_path, tandem.address, screen)
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, recorder.environment[name])  # `main` works on the same recordings
    return recorder


def typed(found: list[Event]) -> str:
    return "".join(e.text for e in found if isinstance(e, KeyPressed))


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """Return what the command line says."""
    assert main(words) == code
    told = capsys.readouterr()
    return told.out + told.err


def wait_for_key(recorder: Recorder, key: str) -> None:
    """Wait until a key came up; its line is the last of what was done before it."""

    def there() -> bool:
        return any(isinstance(e, KeyReleased) and e.key == key for e in events(recorder.folder))

    until(there, f"the key {key}")


def stands(pid: int) -> bool:
    """Whether all threads are stopped: on a busy machine they go on for a moment after the signal."""
    stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


@contextmanager
def busy_hand(screen: str) -> Iterator[subprocess.Popen[bytes]]:
    """Clicks and types without end: each click wants a picture, each line changes the screen."""
    act = 'xdotool mousemove 640 360 click 1 key Return type --delay 2 "words $n"'
    script = f"n=0; while {act}; do n=$((n+1)); done"
    environment = {**os.environ, "DISPLAY": screen}
    process = subprocess.Popen(
        ["sh", "-c", script], env=environment, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        # What it held down when it was killed must not stay down for others.
        held = ["Return", "space", *"words0123456789"]
        keys = [word for key in held for word in ("keyup", key)]
        subprocess.run(["xdotool", "mouseup", "1", *keys], env=environment, check=True)


def wait_for_half_a_picture(folder: Folder) -> None:
    """Return while a picture is written beside its place: that takes a few milliseconds."""
    over = time.monotonic() + 30
    while not any(entry.name[0] == "." for entry in os.scandir(folder.frames)):
        assert time.monotonic() < over, "no picture was written"


@pytest.mark.parametrize("moment", ["early", "later", "in the middle of a picture"])
def test_a_killed_recorder_leaves_a_recording_that_can_be_reviewed(
    recorder: Recorder, screen: str, terminal: str, tmp_path: Path, moment: str,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    wanted = random.randint(2, 8) if moment == "early" else random.randint(30, 90)
    with recorder.running() as running, busy_hand(screen):
        folder = recorder.folder
        until(lambda: sum(isinstance(e, Pressed) for e in events(folder)) > 1, "two clicks")
        until(lambda: len(list(events(folder))) > wanted, "some events")
        if moment == "in the middle of a picture":
            wait_for_half_a_picture(folder)
        before = [] if moment == "in the middle of a picture" else list(events(folder))
        running.process.send_signal(signal.SIGKILL)
        running.end(-signal.SIGKILL)
    if moment == "later":
        with folder.events.open("a") as out:
            out.write('{"kind":"pressed","t":')  # what a kernel that went down may leave
    found = list(events(folder))
    assert set(map(repr, before)) <= set(map(repr, found))
    for frame in {e.sha256 for e in found if isinstance(e, FrameTaken)}:
        data = (folder.frames / f"{frame}.png").read_bytes()
        assert hashlib.sha256(data).hexdigest() == frame
    assert write_steps(iter(found), tmp_path / "steps.jsonl") > 0
    listed = said(capsys, "list")
    assert "  cut off  " in listed and folder.path.name[:8] in listed
    ready = prepare(folder, tmp_path / "never.toml", found_by())
    # What an xterm shows may be a password: it is removed. That it was judged to its end is what counts.
    assert sum(1 for _ in ready.events()) > 0
    assert {p.suffix for p in (ready.path / "frames").iterdir()} <= {".png"}
    monkeypatch.setattr("builtins.input", lambda: "y")
    said(capsys, "delete", folder.path.name[:8])
    assert not folder.path.exists()


def test_what_runs_is_neither_deleted_nor_reviewed_nor_recorded_twice(
    recorder: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    with recorder.running() as running:
        name = recorder.folder.path.name[:8]
        listed = said(capsys, "list")
        assert name in listed and "  recording  " in listed
        for command in ("delete", "review"):
            assert "is being recorded" in said(capsys, command, name, code=1)
        second = recorder.ask("record", "--no-sound", "--own", "Another one")
        assert second.returncode == 1 and "another recorder records" in second.stderr
        assert recorder.folder.path.name.startswith(name)
        running.process.send_signal(signal.SIGKILL)
        running.end(-signal.SIGKILL)
    with recorder.running() as running:  # who was killed holds nothing any more
        running.process.terminate()
        running.end()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_with_a_whole_recording(
    recorder: Recorder, hand: Hand, terminal: str, how: signal.Signals,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    with recorder.running() as running:
        hand("type", "--delay", "1", "abc")
        running.process.send_signal(how)
        told = running.end()
    assert f"tandem-recorder review {recorder.folder.path.name[:8]}" in told
    found = list(events(recorder.folder))
    assert isinstance(found[-1], Stopped) and "abc".startswith(typed(found))
    assert "  recorded  " in said(capsys, "list")


def test_a_terminal_that_is_closed_ends_it_with_a_whole_recording(
    recorder: Recorder, hand: Hand, terminal: str
) -> None:
    ours, its = pty.openpty()
    process = subprocess.Popen(
        ["setsid", "--ctty", *recorder.command("record", "--no-sound", "--own", "Close it")],
        env=recorder.environment, stdin=its, stdout=its, stderr=its,
    )  # fmt: skip
    os.close(its)
    try:
        told = b""
        while b"RECORDING" not in told:
            told += os.read(ours, 4096)
        hand("key", "q")
        wait_for_key(recorder, "q")
        os.close(ours)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    found = list(events(recorder.folder))
    assert isinstance(found[-1], Stopped) and typed(found) == "q"


def test_a_display_that_dies_ends_it_with_a_whole_recording(
    tmp_path: Path,
    tandem: Tandem,
) -> None:
    with x_server("800x600") as (name, server):
        recorder = Recorder(tmp_path, tandem.address, name)
        environment = {**os.environ, "DISPLAY": name}
        with program("xterm", "-e", "cat", env=environment), recorder.running() as running:
            subprocess.run(["xdotool", "key", "q"], env=environment, check=True, timeout=30)
            wait_for_key(recorder, "q")
            server.kill()
            server.wait()
            told = running.end()
    assert "the recording is stopped" in told and "review" in told
    found = list(events(recorder.folder))
    assert isinstance(found[-1], Stopped)
    assert any(isinstance(e, Missed) for e in found)
    assert any(isinstance(e, FrameTaken) for e in found)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small tmpfs")
def test_a_full_disk_pauses_it_and_it_goes_on_when_there_is_room(
    tmp_path: Path,
    tandem: Tandem,
    screen: str,
    hand: Hand,
    terminal: str,
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "none", str(small)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    try:
        recorder = Recorder(tmp_path, tandem.address, screen, data=small)
        with recorder.running() as running:
            hand("key", "b")
            wait_for_key(recorder, "b")
            ballast = small / "ballast"
            with ballast.open("wb", buffering=0) as out:
                try:
                    while True:
                        out.write(b"\0" * 4096)
                except OSError:
                    pass
            for _ in range(40):
                hand("type", "--delay", "1", "more and more and more\n")
                hand("mousemove", "300", "200", "click", "1")
                if "PAUSED" in running.said:
                    break
            running.wait_for("PAUSED")
            assert "the disk takes nothing more (No space left on device)" in running.said
            ballast.unlink()
            hand("key", "ctrl+alt+p")
            running.wait_for("RECORDING", times=2)
            hand("key", "z")
            wait_for_key(recorder, "z")
            hand("key", "ctrl+alt+s")
            running.end()
        found = list(events(recorder.folder))
        assert any(isinstance(e, Missed) and "No space left" in e.cause for e in found)
        assert typed(found).startswith("b") and typed(found).endswith("z")
        assert isinstance(found[-1], Stopped)
        named = {e.sha256 for e in found if isinstance(e, FrameTaken)}
        assert named <= {path.stem for path in recorder.folder.frames.iterdir()}
        assert write_steps(iter(found), tmp_path / "steps.jsonl") > 0
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_a_recorder_that_was_stopped_for_a_while_says_so_and_keeps_nothing_of_it(
    recorder: Recorder, hand: Hand, terminal: str
) -> None:
    with recorder.running() as running:
        hand("key", "b")
        wait_for_key(recorder, "b")
        running.process.send_signal(signal.SIGSTOP)
        until(lambda: stands(running.process.pid), "the stop of all threads")
        hand("type", "--delay", "1", "hunter2")
        over = time.monotonic() + 6.5  # the recorder takes 5 s for a stop
        until(lambda: time.monotonic() > over, "the time of the stop")
        running.process.send_signal(signal.SIGCONT)
        running.wait_for("stood still")
        hand("key", "z")
        wait_for_key(recorder, "z")
        running.process.terminate()
        running.end()
    found = list(events(recorder.folder))
    (missed,) = (e for e in found if isinstance(e, Missed))
    assert "stood still" in missed.cause and missed.what == "all" and missed.t - missed.since > 5
    assert typed(found) == "bz"
    assert [e for e in found if missed.t - 5 < e.t < missed.t] == []
    assert not any(isinstance(e, Paused | Resumed) for e in found)
