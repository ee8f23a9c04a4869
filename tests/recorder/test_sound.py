"""The microphone, through a real PulseAudio whose only source is what a test plays."""

from __future__ import annotations

import os
import shutil
import subprocess
import wave
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import soundfile

from recorder.capture.errors import CaptureError
from recorder.session import State
from tests.recorder.conftest import Hand, Recorded, needs_x, program
from tests.waiting import until
from trajectory.recording import AudioWritten, Event, Paused, Resumed

pytestmark = [
    needs_x,
    pytest.mark.skipif(
        any(shutil.which(n) is None for n in ("pulseaudio", "pactl", "paplay", "espeak-ng")),
        reason="needs pulseaudio, pulseaudio-utils and espeak-ng",
    ),
]
Record = Callable[..., Recorded]


@pytest.fixture(scope="module")
def pulse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A sound server of this test's own; gives its address."""
    folder = tmp_path_factory.mktemp("pulse")
    address = f"unix:{folder}/native"
    environment = {**os.environ, "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)}
    with program(
        *("pulseaudio", "-n", "--exit-idle-time=-1", "--use-pid-file=no", "--daemonize=no"),
        *("-L", "module-null-sink sink_name=voice rate=16000 channels=1"),
        *("-L", f"module-native-protocol-unix auth-anonymous=1 socket={folder}/native"),
        env=environment,
    ):
        until(
            lambda: subprocess.run(
                ["pactl", "-s", address, "info"], capture_output=True, timeout=10
            ).returncode == 0,
            "PulseAudio",
        )  # fmt: skip
        yield address


@pytest.fixture
def say(pulse: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], float]:
    """Speak a sentence into the source; gives its length in seconds when it has been heard."""
    monkeypatch.setenv("PULSE_SERVER", pulse)

    def speak(text: str) -> float:
        spoken = tmp_path / "spoken.wav"
        subprocess.run(["espeak-ng", "-w", str(spoken), text], check=True, timeout=30)
        subprocess.run(["paplay", "-s", pulse, "-d", "voice", str(spoken)], check=True, timeout=30)
        with wave.open(str(spoken)) as sound:
            return sound.getnframes() / sound.getframerate()

    return speak


def pieces(events: list[Event]) -> list[AudioWritten]:
    return [e for e in events if isinstance(e, AudioWritten)]


def test_a_voice_is_recorded_at_its_time(record: Record, say: Callable[[str], float]) -> None:
    recorded = record(microphone="voice.monitor")
    length = say("I open the menu.")
    events = recorded.stop()
    heard = pieces(events)
    assert heard and not all(piece.silent for piece in heard)
    data, rate = soundfile.read(recorded.folder.audio / heard[0].name)
    assert rate == 16_000 and len(data) == heard[0].samples
    assert sum(piece.samples for piece in heard) / rate > length * 0.8
    end = events[-1].t
    for piece in heard:
        assert 0 <= piece.t <= piece.t + piece.samples / rate <= end + 0.5


def test_silence_is_known_as_silence(record: Record, say: Callable[[str], float]) -> None:
    recorded = record(microphone="voice.monitor")
    recorded.session.mark()
    until(lambda: recorded.session._listeners[-1]._blocks, "a block of sound")  # type: ignore[attr-defined]
    heard = pieces(recorded.stop())
    assert heard and all(piece.silent for piece in heard)


def test_nothing_is_heard_during_a_pause(
    record: Record, say: Callable[[str], float], hand: Hand, pulse: str
) -> None:
    recorded = record(microphone="voice.monitor")
    say("Before.")
    recorded.session.pause()

    def listeners() -> str:
        told = ["pactl", "-s", pulse, "list", "short", "source-outputs"]
        return subprocess.run(told, capture_output=True, text=True, timeout=10).stdout.strip()

    until(lambda: listeners() == "", "the microphone to be let go of")
    say("A secret.")
    recorded.session.resume()
    assert recorded.session.state is State.RECORDING
    until(listeners, "the microphone again")
    say("After.")
    events = recorded.stop()
    paused, resumed = (next(e for e in events if isinstance(e, k)) for k in (Paused, Resumed))
    for piece in pieces(events):
        ended = piece.t + piece.samples / piece.rate
        assert ended <= paused.t + 0.001 or piece.t >= resumed.t
    before = [piece for piece in pieces(events) if piece.t < paused.t]
    after = [piece for piece in pieces(events) if piece.t >= resumed.t]
    assert any(not piece.silent for piece in before) and any(not piece.silent for piece in after)


def test_a_microphone_that_is_not_there_is_refused_plainly(
    record: Record, say: Callable[[str], float]
) -> None:
    with pytest.raises(CaptureError, match=r"no microphone: .*--no-sound"):
        record(microphone="nowhere")
