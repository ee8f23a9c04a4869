"""What is left out goes on to the last byte: open ends, keys that come up late, screens that change."""

from __future__ import annotations

from pathlib import Path

import pytest
import soundfile
from PIL import Image

from recorder.redact import Denied, Detectors, Judge, Redaction, RedactionError, judge_words
from recorder.redact.screen.pictures import GREY
from recorder.review import prepare
from tests.recorder.made_recording import (
    CANARY,
    EDITOR,
    FIELD,
    NOTES,
    RATE,
    SIZE,
    Made,
    found_by,
    word,
)
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


def applied(tmp_path: Path, made: Made) -> list[rec.Event]:
    return list(prepare(made.done(), tmp_path / "never.toml", found_by()).events())


def test_a_key_of_a_password_that_comes_up_late_is_left_out(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.events.append(rec.WindowChanged(0.1, "gedit", "Notes", EDITOR))
    made.focus(0.2, "Password", FIELD, True)
    made.events += [rec.KeyPressed(2, "x", "x"), rec.KeyReleased(2.05, "x")]
    made.events += [rec.KeyPressed(3, "q", "q"), rec.KeyPressed(3.1, "tab")]
    made.focus(3.15, "Notes", NOTES, False)
    made.events += [rec.KeyReleased(6, "q"), rec.KeyPressed(6.5, "q", "q")]
    made.events += [rec.KeyReleased(6.6, "q"), rec.Stopped(9)]
    left = [e for e in applied(tmp_path, made) if isinstance(e, rec.KeyPressed | rec.KeyReleased)]
    assert left == [rec.KeyPressed(6.5, "q", "q"), rec.KeyReleased(6.6, "q")]


def test_a_place_is_painted_over_where_it_is_on_a_screen_of_another_size(tmp_path: Path) -> None:
    made = Made(tmp_path)
    large, field = (2 * SIZE[0], 2 * SIZE[1]), (900, 500, 200, 40)
    picture = Image.new("RGB", large, "white")
    picture.save(made.folder.frames / "large.png")
    made.events.append(rec.WindowChanged(0.1, "gedit", "Notes", (0, 0, *large)))
    made.focus(0.2, "Password", field, True)
    made.type(2, "lantern")
    made.events += [rec.FrameTaken(3, 2.9, "large", *large), rec.Stopped(9)]
    (frame,) = [e for e in applied(tmp_path, made) if isinstance(e, rec.FrameTaken)]
    with Image.open(next((made.folder.path / "redacted/frames").glob(f"{frame.sha256}*"))) as seen:
        assert seen.getpixel((1000, 520)) == GREY and seen.getpixel((450, 260)) != GREY


@pytest.mark.parametrize("address", ["http://[::1", "https://ex\uff03mple.com/"])
def test_an_address_that_is_none_closes_its_window(tmp_path: Path, address: str) -> None:
    made = Made(tmp_path)
    made.events += [
        rec.WindowChanged(0.1, "firefox", "a", EDITOR),
        rec.WindowChanged(4, "firefox", "strange", EDITOR, address),
        rec.WindowChanged(8, "firefox", "b", EDITOR), rec.Stopped(12),
    ]  # fmt: skip
    titles = [e.title for e in applied(tmp_path, made) if isinstance(e, rec.WindowChanged)]
    assert titles == ["a", "b"]


def test_a_secret_is_found_each_time_that_it_was_typed() -> None:
    text = f"{CANARY} and again {CANARY}"
    found = {(f.start, f.end) for f in found_by().found(text) if f.kind == "secret"}
    assert {(0, len(CANARY)), (len(text) - len(CANARY), len(text))} <= found


@pytest.mark.parametrize(
    "line", [{"text": "a"}, {"text": "a", "began": "x", "ended": 1}, {"text": "a", "began": 2, "ended": 1},
             {"text": "a", "began": float("nan"), "ended": 1}],
)  # fmt: skip
def test_a_word_of_which_nobody_knows_when_it_was_said_holds_the_recording_back(
    line: dict[str, object],
) -> None:
    with pytest.raises(RedactionError, match="word 2 needs text, began and ended"):
        judge_words([word(1, "hello"), line], Detectors([]))


def judged(*events: rec.Event) -> list[Redaction]:
    judge = Judge(Detectors([]), Denied())
    for event in events:
        judge.take(event)
    return judge.close()


def test_nobody_vouches_for_a_field_over_a_hole_in_the_recording() -> None:
    start: list[rec.Event] = [
        rec.WindowChanged(0, "gedit", "a", EDITOR),
        rec.ElementSeen(1, "entry", "", NOTES, focused=True, password=False),
    ]
    keys = [rec.KeyPressed(2, "a", "a"), rec.KeyPressed(5, "b", "b"), rec.KeyPressed(9, "c", "c")]
    hole = rec.Missed(6, 4, "all", "the disk was slower than what happened")
    removed = judged(*start, *keys[:2], hole, keys[2])
    assert all(any(r.began <= t <= r.ended for r in removed) for t in (5, 9))
    assert not any(r.began <= 2 <= r.ended for r in removed)
    # Pictures alone were missed: who has the focus was told.
    assert not judged(*start, *keys[:2], rec.Missed(6, 4, "frames", "slow"), keys[2])


def test_a_page_on_the_list_is_closed_since_before_its_address_was_told() -> None:
    bank = rec.WindowChanged(10, "firefox", "Hello", EDITOR, "https://www.paypal.com/a")
    (removed,) = judged(rec.WindowChanged(0, "firefox", "News", EDITOR, "https://a.org/"), bank)
    assert removed.began <= 8
    vault = rec.WindowChanged(10, "keepassxc", "db", EDITOR)
    assert 8.5 < judged(rec.WindowChanged(0, "gedit", "a", EDITOR), vault)[0].began <= 9
