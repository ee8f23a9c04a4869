"""What was typed into a password field is removed wherever else it turns up, whatever it looks like."""

from __future__ import annotations

from pathlib import Path

import pytest

from recorder.redact import Denied, Detectors, Judge, Line, hidden, judge_words, passwords
from recorder.redact.text.passwords import Passwords
from recorder.review import Edits, Looking, confirm, prepare
from tests.recorder.made_recording import EDITOR, FIELD, NOTES, Made, Reads, found_by, word
from trajectory import recording as rec

WORD = "wombat lantern-5"  # nothing by its look
ABOVE = (40, 20, 300, 24)
KNOWING = found_by().knowing(Passwords([WORD]))


def entry(t: float, password: bool, box: tuple[int, int, int, int] = FIELD) -> rec.ElementSeen:
    return rec.ElementSeen(t, "entry", "", box, focused=True, password=password)


def keys(t: float, *typed: str) -> list[rec.Event]:
    """Characters, or the names of keys."""
    return [
        rec.KeyReleased(t + n * 0.1, "ctrl")
        if key == "let go"
        else rec.KeyPressed(t + n * 0.1, key, key if len(key) == 1 else "")
        for n, key in enumerate(k for text in typed for k in ([text] if text in NAMED else text))
    ]


NAMED = {"enter", "tab", "backspace", "delete", "left", "home", "end", "ctrl", "let go"}


def finds(known: Passwords, *texts: str) -> list[bool]:
    return [bool(known.within(text)) for text in texts]


def of(*typed: str) -> Passwords:
    start: list[rec.Event] = [
        rec.WindowChanged(0, "a", "b", EDITOR),
        entry(0.1, False, ABOVE),
        *keys(0.2, "my name"),
    ]
    events = [*start, rec.KeyPressed(6, "tab"), entry(6.1, True), *keys(6.5, *typed)]
    return passwords([*events, entry(60, False, ABOVE), *keys(61, "ordinary")])


@pytest.mark.parametrize(
    ("typed", "one"),
    [
        (["lanterm", "backspace", "n"], "lantern"), (["lantrn", "left", "left", "e"], "lantern"),
        (["antern", "home", "l"], "lantern"), (["lanntern", "left", "left", "left", "left", "backspace"], "lantern"),
        (["xlantern", "home", "delete", "enter"], "lantern"), (["wrong", "ctrl", "left", "let go", "lantern"], "lantern"),
    ],
)  # fmt: skip
def test_it_is_what_stood_in_the_field(typed: list[str], one: str) -> None:
    assert finds(of(*typed), one, one.upper(), "my name", "ordinary") == [True, True, False, False]


def test_every_attempt_counts_and_what_is_short_does_not() -> None:
    known = of("lantern", "enter", "wombat", "enter", "pizza", "tab", "marble")
    assert finds(known, "lantern", "wombat", "marble", "pizza") == [True, True, True, False]
    deleted = of("lantern", *["backspace"] * 7, "wombat")
    assert finds(deleted, "lantern", "wombat", "lanter") == [True, True, False]
    assert not of("pizza") and not of("     ") and not passwords([])


def test_keys_of_which_nobody_can_tell_are_none() -> None:
    assert not passwords([rec.WindowChanged(0, "a", "b", EDITOR), *keys(1, "lantern", "enter")])


def test_it_is_told_to_nobody() -> None:
    assert "wombat" not in repr(KNOWING) + repr(KNOWING.passwords) + repr(vars(KNOWING))
    assert all("wombat" not in repr(f) for f in KNOWING.found(f"it is {WORD}"))


@pytest.mark.parametrize(
    "text",
    [
        f"{WORD} - Editor", WORD.upper(), "https://a.b/find/Wombat%20lantern%2D5", "q=wombat+lantern-5",
        "https://a.b/wombat%2520lantern-5",
    ],
)  # fmt: skip
def test_it_is_found_in_titles_addresses_and_names(text: str) -> None:
    assert found_by().clean(text) == text and KNOWING.clean(text) == "[removed]"
    assert KNOWING.clean("a wombat with a lantern") == "a wombat with a lantern"


@pytest.mark.parametrize(
    "text",
    ["wombat lantern-5", "it is wombatlantern-S", "wombat 1antern 5 x", "vvombat  lanlern_5", "wom bat lantem-5"],
)  # fmt: skip
def test_it_is_found_on_pictures_however_it_was_read(text: str) -> None:
    line = Line(text, (20, 20, 200, 16))
    assert not hidden([line], found_by()) and hidden([line], KNOWING) == {line.box: "secret"}
    other = Line("a combat with lanterns", (20, 60, 200, 16))
    assert not hidden([other], KNOWING)


def test_it_is_found_broken_over_two_lines() -> None:
    lines = [Line("$ echo wombat lan", (20, 20, 300, 16)), Line("tern-5", (20, 38, 60, 16))]
    more = [Line("done", (20, 56, 40, 16)), Line("$ ls", (20, 2, 40, 16))]
    assert hidden([*lines, *more], KNOWING) == {line.box: "secret" for line in lines}


@pytest.mark.parametrize(
    "spoken", ["wombat lantern five", "Wombat, lantern-5.", "wombat lantern dash five", "w om bat lan tern 5"]
)  # fmt: skip
def test_it_is_found_in_what_was_said(spoken: str) -> None:
    texts = ["now", "look", "here", *spoken.split()]
    words = [word(1 + n * 0.5, text) for n, text in enumerate(texts)]
    words.append(word(30, "yes"))
    removed, before = (
        [r for r in judge_words(words, by) if r.cause == "secret that was said"]
        for by in (KNOWING, found_by())
    )
    assert removed and not before
    assert all({"audio", "words", "input"} <= set(r.streams) for r in removed)
    assert min(r.began for r in removed) >= 2.1 and max(r.ended for r in removed) < 29
    assert max(r.ended for r in removed) >= 1 + 0.5 * (len(texts) - 1) + 0.4


def test_where_it_belongs_it_is_no_secret_in_typed_text_and_elsewhere_it_is() -> None:
    start: list[rec.Event] = [
        rec.WindowChanged(0, "a", "b", EDITOR),
        rec.Pressed(1, 50, 70, "left"),
        entry(1.1, True),
    ]
    events = [*start, *keys(2, "lantern", "enter"), entry(5, False, NOTES), *keys(9, "a lantern b")]
    judge = Judge(Detectors([]).knowing(passwords(events)), Denied())
    for event in events:
        judge.take(event)
    typed = [r for r in judge.close() if r.cause == "secret in typed text" and "input" in r.streams]
    assert typed and all(r.began > 8 and r.ended < 11 and r.place == NOTES for r in typed)


def test_a_press_on_a_password_field_is_enough() -> None:
    field = rec.ElementSeen(5, "entry", "", FIELD, password=True)
    start: list[rec.Event] = [rec.WindowChanged(0, "a", "b", EDITOR), entry(1, False, ABOVE)]
    press = rec.Pressed(5, 50, 70, "left")
    judge = Judge(Detectors([]), Denied())
    for event in [*start, press, field, *keys(6, "lantern"), entry(20, False, ABOVE)]:
        judge.take(event)
    (removed,) = [r for r in judge.close() if r.cause == "password field" and "input" in r.streams]
    assert removed.began <= 5 and removed.ended >= 20 and removed.place == FIELD
    # The pointer is beside it, or another was told to have the focus since.
    beside = rec.Pressed(5, 50, 200, "left")
    assert not passwords([*start, beside, field, *keys(6, "lantern")])
    told: list[rec.Event] = [
        press,
        entry(5.1, False, NOTES),
        rec.ElementSeen(5.2, "entry", "", FIELD, password=True),
    ]
    assert not passwords([*start, *told, *keys(6, "lantern")])


def test_no_stream_of_a_recording_has_it_and_a_stopped_look_knows_it_again(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.events.append(rec.WindowChanged(0.1, "gedit", "Notes", EDITOR))
    made.frame(0.5)
    made.click(4.0, 60, 70)
    made.focus(4.1, "Password", FIELD, True)
    made.type(4.5, WORD)
    made.click(8.0, 60, 130)
    made.focus(8.1, "Notes", NOTES, False)
    shown = made.frame(12.0, (44, 222, WORD))
    made.events.append(rec.ElementSeen(13.0, "label", f"Hello {WORD}", NOTES))
    made.events.append(rec.Marked(14.0, WORD))
    made.type(20.0, "fine")
    made.events.append(rec.WindowChanged(24.0, "gedit", "Find", EDITOR, f"https://x.org/{WORD}"))
    made.events.append(rec.WindowChanged(25.0, "gedit", "Notes", EDITOR))
    made.frame(27.0)
    made.events.append(rec.Stopped(30.0))
    folder = made.done([word(28.0, "fine"), *[word(29 + n, t) for n, t in enumerate(WORD.split())]])
    prepare(folder, tmp_path / "never.toml", found_by())
    ready = prepare(folder, tmp_path / "never.toml", found_by())  # another process goes on
    box = (40, 220, 200, 20)
    looking = Looking(ready, lambda: Reads(Line("vvombat lantern-S", box)))
    looking.start()
    looking.wait(30)
    assert looking.state == "read" and looking.redactions()
    edits = Edits(tmp_path / "edits", steps=99, words=len(ready.lines("words.jsonl")))
    upload = confirm(ready, edits, looking.redactions())
    for path in [p for p in upload.rglob("*") if p.is_file()]:
        data = path.read_bytes().lower()
        assert not any(one in data for one in (b"wombat", b"lantern", b"vvombat")), path.name
    assert b"fine" in (upload / "steps.jsonl").read_bytes()
    assert not (upload / "frames" / f"{shown}.png").exists()
