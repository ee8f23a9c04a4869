"""A canary that was typed, shown, only shown, in a title and spoken is in no byte of what leaves."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from PIL import Image

from recorder.redact import Reader, judge_words, reader
from recorder.review import Edits, Looking, confirm, prepare
from tests.recorder.conftest import Hand, Recorded, needs_x, program, to_front
from tests.recorder.made_recording import (
    CANARY,
    FIELD,
    NOTES,
    PASSWORD,
    canary_recording,
    found_by,
    word,
)
from tests.waiting import until
from trajectory import recording as rec
from trajectory.recording import from_line

needs_ocr = pytest.mark.skipif(
    importlib.util.find_spec("rapidocr_onnxruntime") is None, reason="needs tandem-recorder[ocr]"
)

SHOWN = CANARY[4:12]


@pytest.fixture(scope="module")
def upload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("recordings")
    ready = prepare(canary_recording(root), root / "never.toml", found_by())
    words = len(ready.lines("words.jsonl"))
    edits = Edits(ready.folder.path / "edits.jsonl", steps=99, words=words)
    return confirm(ready, edits, [])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def spellings(secret: str) -> list[bytes]:
    """Return how the secret, or a good half of it, may stand in a file."""
    found = []
    for part in (secret, secret[:10], secret[-10:]):
        raw = part.encode()
        found += [
            raw,
            raw.lower(),
            part.encode("utf-16-le"),
            part.encode("utf-16-be"),
            raw.hex().encode(),
        ]
        for shift in range(3):  # a text within a longer one that was encoded
            found.append(base64.b64encode(b" " * shift + raw)[4:-4])
    return found


def test_no_byte_of_what_leaves_has_it(upload: Path) -> None:
    for path in [p for p in upload.rglob("*") if p.is_file()]:
        data = path.read_bytes()
        for secret in (CANARY, PASSWORD):
            for spelling in spellings(secret):
                assert spelling not in data, (path.name, spelling)
                assert spelling.decode("latin-1") not in path.name


def test_no_sequence_of_keys_spells_it(upload: Path) -> None:
    events = [from_line(line) for line in (upload / "events.jsonl").read_text().splitlines()]
    typed = "".join(e.text for e in events if isinstance(e, rec.KeyPressed))
    assert typed == "hello world"
    released = "".join(e.key for e in events if isinstance(e, rec.KeyReleased))
    assert released == "hello world"


def test_what_was_clean_is_still_there(upload: Path) -> None:
    steps = lines(upload / "steps.jsonl")
    assert [s["action"]["type"] for s in steps] == ["click", "click", "click", "type", "click"]
    assert steps[3]["action"]["text"] == "hello world"
    assert all((upload / "frames" / f"{s['frame']}.png").exists() for s in steps)
    assert [w["text"] for w in lines(upload / "words.jsonl")] == [
        *("I", "save", "the", "note", "my", "password")
    ]
    causes = {r["cause"] for r in lines(upload / "redactions.jsonl")}
    assert {"password field", "secret in typed text", "secret in a title or an address"} <= causes
    assert all("ANARY" not in cause for cause in causes)


def test_the_places_are_one_colour_on_every_picture_that_showed_them(upload: Path) -> None:
    seen = 0
    for line in (upload / "events.jsonl").read_text().splitlines():
        event = from_line(line)
        if not isinstance(event, rec.FrameTaken):
            continue
        picture = np.asarray(Image.open(upload / "frames" / f"{event.sha256}.png").convert("RGB"))
        assert not 16.0 <= event.t <= 20.5, "a picture of the window with the title is kept"
        for place, since, before in ((FIELD, 3.1, 9.5), (NOTES, 9.3, 99)):
            if since <= event.t <= before:
                left, top, width, height = place
                part = picture[top : top + height, left : left + width]
                assert len(np.unique(part.reshape(-1, 3), axis=0)) == 1, event.t
                seen += 1
    assert seen >= 6


def test_the_sound_is_silent_there_and_only_there(upload: Path) -> None:
    a, rate = soundfile.read(upload / "audio/a.flac", dtype="int16")
    b, _ = soundfile.read(upload / "audio/b.flac", dtype="int16")
    assert len(a) == len(b) == 15 * rate
    for sound, began, ended in ((a, 4.0, 5.2), (a, 9.3, 10.9), (b, 2.0, 5.0), (b, 12.8, 13.8)):
        assert not sound[int(began * rate) : int(ended * rate)].any(), (began, ended)
    for sound, began, ended in ((a, 0.0, 2.5), (a, 13.5, 15.0), (b, 6.0, 12.0)):
        assert np.count_nonzero(sound[int(began * rate) : int(ended * rate)]) > rate // 2


@needs_ocr
@needs_x
def test_what_a_window_only_shows_is_found_by_reading_its_pictures(
    record: Callable[..., Recorded], hand: Hand, screen: str, tmp_path: Path
) -> None:
    """An xterm says nothing over AT-SPI, and nobody types: only the pictures have the secret."""
    # A number in the title may be taken for a telephone's.
    title, by, seen = "a viewer", reader(), dict[str, str]()
    recorded = record()
    words = f"echo your key; echo; echo {CANARY}; echo; echo end of file; exec sleep 600"
    environment = {**os.environ, "DISPLAY": screen}

    def shown() -> bool:
        hand("click", "1")
        return any(SHOWN in text for text in glimpsed(recorded, by, seen))

    with program("xterm", "-T", title, "-e", "sh", "-c", words, env=environment):
        to_front(hand, title)
        hand("mousemove", "120", "90")
        until(shown, "a picture of the secret", deadline_s=60)
    recorded.stop()
    upload = looked_through(recorded, tmp_path, {n for n, text in seen.items() if SHOWN in text})
    texts = [read(by, path) for path in (upload / "frames").iterdir()]
    assert len(texts) and not any(SHOWN in text for text in texts)
    assert any("endoffile" in text for text in texts), "only the secret is painted over"
    in_no_byte(upload, CANARY)


@needs_ocr
@needs_x
def test_what_was_typed_at_a_prompt_is_found_where_a_terminal_shows_it(
    record: Callable[..., Recorded],
    hand: Hand,
    screen: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It looks like nothing: only that it was typed into a password field gives it away."""
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    answer, by, seen = "quietpebbles", reader(), dict[str, str]()
    environment = {**os.environ, "DISPLAY": screen, "LC_ALL": "C.UTF-8", "HOME": str(tmp_path)}
    recorded = record()

    def asks(wanted: bool) -> None:
        """Wait until the line of the terminal says so."""

        def told(events: list[rec.Event]) -> bool:
            lines = [e for e in events if isinstance(e, rec.ElementSeen) and e.role == "terminal"]
            return bool(lines) and lines[-1].password is wanted

        recorded.wait(told, f"a prompt: {wanted}")

    def shown() -> bool:
        hand("click", "1")
        return any(answer in text for text in glimpsed(recorded, by, seen))

    title = "a prompt"  # a number in it may be taken for a telephone's
    script = 'read -s x; read y; echo; echo "$x"; echo; echo end of file; exec sleep 600'
    font = ("-fa", "DejaVu Sans Mono", "-fs", "12")
    with program("xterm", *font, "-T", title, "-e", "bash", "-c", script, env=environment):
        to_front(hand, title)
        hand("mousemove", "400", "300")
        asks(True)
        hand("type", "--delay", "5", answer + "\n")
        asks(False)
        now = recorded.session.recorded()
        until(lambda: recorded.session.recorded() > now + 1.5, "the time after it")
        hand("key", "Return")
        until(shown, "a picture of the answer", deadline_s=60)
    recorded.stop()
    upload = looked_through(recorded, tmp_path, {n for n, text in seen.items() if answer in text})
    texts = [read(by, path) for path in (upload / "frames").iterdir()]
    assert len(texts) and not any(answer[:6] in text or answer[-6:] in text for text in texts)
    assert any("endoffile" in text for text in texts), "only the answer is painted over"
    in_no_byte(upload, answer)


def glimpsed(recorded: Recorded, by: Reader, seen: dict[str, str]) -> Iterable[str]:
    """Read the pictures that were taken since; return what all of them show."""
    for path in recorded.folder.frames.iterdir():
        if path.suffix == ".png" and path.name not in seen:
            seen[path.name] = read(by, path)
    return seen.values()


def looked_through(recorded: Recorded, home: Path, showing: set[str]) -> Path:
    """Redact, read the pictures and confirm; return what would leave. `showing` are pictures of the secret."""
    ready = prepare(recorded.folder, home / "never.toml", found_by())
    assert showing & {path.name for path in (ready.path / "frames").iterdir()}, "removed already"
    looking = Looking(ready)
    looking.start()
    looking.wait(60)
    assert looking.state == "read"
    return confirm(ready, Edits(home / "edits", steps=99, words=0), looking.redactions())


def in_no_byte(upload: Path, secret: str) -> None:
    for path in [p for p in upload.rglob("*") if p.is_file()]:
        for spelling in spellings(secret):
            assert spelling not in path.read_bytes(), (path.name, spelling)


def read(by: Reader, path: Path) -> str:
    """Return all that can be read on a picture, without spaces."""
    pixels = np.asarray(Image.open(path).convert("RGB"))
    return "".join(line.text for line in by.read(pixels, None)).replace(" ", "")


@pytest.mark.parametrize(
    "spoken",
    [
        "the key is AKIA Q7 CANARY7 EXAMPLE", "my password is correct horse battery staple",
        "it goes A K I A Q 7 C A", "call four one five five five five two six", "the pin is 4821",
        f"it says {CANARY}",
    ],
)  # fmt: skip
def test_a_secret_that_was_said_is_muted_where_there_is_a_transcript(spoken: str) -> None:
    texts = ["now", "I", "look", *spoken.split()]
    words = [word(1 + n * 0.5, text) for n, text in enumerate(texts)]
    words += [word(30 + n * 0.5, text) for n, text in enumerate(["and", "then", "I", "save", "it"])]
    removed = judge_words(words, found_by())
    assert removed and all({"audio", "words"} <= set(r.streams) for r in removed)
    assert max(r.ended for r in removed) >= 1 + 0.5 * (len(texts) - 1) + 0.4
    assert all(r.began >= 2.4 and r.ended < 29 for r in removed)


def test_ordinary_speech_is_left_alone() -> None:
    said = "so I go to the page and at 3 I click on a tab it is the one I want so I do it"
    assert not judge_words([word(1 + n * 0.4, t) for n, t in enumerate(said.split())], found_by())
