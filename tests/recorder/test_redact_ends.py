"""What is left out goes on to the last byte: open ends, keys that come up late, screens that change."""

from __future__ import annotations

from pathlib import Path

import soundfile

from recorder.review import prepare
from tests.recorder.made_recording import EDITOR, FIELD, NOTES, RATE, Made, found_by
from trajectory import recording as rec


def test_a_recording_may_end_in_a_password_field_and_its_sound_is_silent_from_there(
    tmp_path: Path,
) -> None:
    made = Made(tmp_path)
    made.events.append(rec.WindowChanged(0.1, "gedit", "Notes", EDITOR))
    made.focus(0.2, "Notes", NOTES, False)
    made.click(5.0, 60, 70)
    made.focus(5.1, "Password", FIELD, True)
    made.type(6.0, "lantern")
    made.events.append(rec.Stopped(10.0))
    made.sound(0.0, 10.0, "a.flac")
    ready = prepare(made.done(), tmp_path / "never.toml", found_by())
    data, _ = soundfile.read(ready.path / "audio" / "a.flac", dtype="int16")
    assert len(data) == 10 * RATE
    assert data[: int(3.5 * RATE)].any() and not data[5 * RATE :].any()
