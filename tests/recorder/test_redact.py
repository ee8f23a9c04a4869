"""What can't be told is removed, and what is missing holds the recording back."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from recorder.redact import (
    Denied,
    Detectors,
    Judge,
    Redaction,
    RedactionError,
    detectors,
    judge_words,
)
from recorder.redact.text.detectors import Found
from tests.recorder.made_recording import found_by, word
from trajectory import recording as rec

FULL, FIELD = (0, 0, 1280, 720), (100, 100, 200, 30)
NONE = Detectors([])


def tap(t: float, text: str) -> list[rec.Event]:
    return [rec.KeyPressed(t, text, text), rec.KeyReleased(t + 0.02, text)]


def judged(*events: rec.Event, found: Detectors = NONE) -> list[Redaction]:
    judge = Judge(found, Denied())
    for event in events:
        judge.take(event)
    return judge.close()


def field(
    t: float, password: bool | None, box: tuple[int, int, int, int] = FIELD
) -> rec.ElementSeen:
    return rec.ElementSeen(t, "entry", "", box, focused=True, password=password)


def window(t: float, app: str = "gedit", title: str = "a", **more: object) -> rec.WindowChanged:
    return rec.WindowChanged(t, app, title, FULL, **more)


def test_typing_is_kept_only_where_a_field_says_that_it_is_no_password_field() -> None:
    typed = [*tap(5, "a"), *tap(5.2, "b")]
    assert not judged(window(0), field(1, False), *typed)
    for before in ([], [field(1, None)]):
        (removed,) = judged(window(0), *before, *typed)
        assert removed.began <= 5 and removed.ended >= 5.22
        assert removed.place == (FIELD if before else None)


def test_a_field_tells_late_and_the_keys_before_are_its_own() -> None:
    click = rec.Pressed(5, 110, 110, "left")
    late = judged(window(0), field(1, False), click, *tap(5.2, "a"), field(5.6, True), *tap(6, "b"))
    assert late[0].began <= 5 and late[0].cause == "password field" and late[0].place == FIELD
    assert not judged(window(0), click, *tap(5.2, "a"), field(5.6, False), *tap(6, "b"))


def pressed(t: float, key: str) -> rec.KeyPressed:
    return rec.KeyPressed(t, key, "\t" if key == "tab" else "\r")


def passwords(removed: list[Redaction]) -> list[Redaction]:
    return [r for r in removed if r.cause == "password field" and "input" in r.streams]


ABOVE = (100, 50, 200, 30)


@pytest.mark.parametrize(
    ("moves", "began"),
    [
        ([rec.Pressed(5, 110, 110, "left")], 5), ([pressed(5, "tab")], 5), ([window(5, "other")], 5),
        # Left again before it was told; and a click beside it that moved nothing.
        ([pressed(5, "tab"), *tap(5.2, "x"), pressed(6.5, "enter")], 5),
        ([rec.Pressed(5, 110, 110, "left"), rec.Pressed(7, 900, 600, "left")], 5),
    ],
)  # fmt: skip
@pytest.mark.parametrize("told", [5.1, 6.8, 9.5])
def test_a_password_field_has_the_focus_from_the_move_that_gave_it(
    moves: list[rec.Event], began: float, told: float
) -> None:
    before = [m for m in moves if m.t < told]
    after = [m for m in moves if m.t >= told]
    typed = [*tap(told + 0.5, "b"), *tap(told + 4, "c")]
    events = [window(0), field(1, False, ABOVE), *before, field(told, True), *after, *typed]
    events.append(field(told + 20, False, ABOVE))
    (removed,) = passwords(judged(*sorted(events, key=lambda e: e.t)))
    assert began - 1.0 <= removed.began + (told - began < 1) and removed.began <= began
    assert removed.place == FIELD and removed.ended >= (moves[-1].t + 2 if after else told + 20)
    assert {"frames", "audio", "elements", "words"} <= set(removed.streams)


def test_a_password_field_that_is_told_very_late_reaches_back_to_the_last_move() -> None:
    events = [window(0), field(1, False, ABOVE), pressed(5, "tab"), *tap(6, "x"), field(40, True)]
    (removed,) = passwords(judged(*events))
    assert removed.began <= 5 and removed.ended == float("inf")


def test_what_was_typed_into_the_field_before_is_kept() -> None:
    name = [*tap(2, "a"), *tap(3, "d"), *tap(4, "a")]
    events = [window(0), rec.Pressed(1, 110, 60, "left"), field(1.1, False, ABOVE), *name]
    (removed,) = passwords(judged(*events, pressed(6, "tab"), *tap(6.2, "x"), field(6.3, True)))
    assert 5 < removed.began <= 6


def test_what_was_typed_before_a_pause_is_kept_whatever_has_the_focus_after_it() -> None:
    before = [window(0), rec.Pressed(1, 110, 60, "left"), field(1.1, False, ABOVE), *tap(2, "a")]
    after = [rec.Paused(3), rec.Resumed(60), field(60, True), *tap(61, "x")]
    (removed,) = passwords(judged(*before, *after))
    assert 3 <= removed.began <= 60 and removed.ended > 61
    # Nobody tells who has it after the pause: what is typed then may be anything.
    (unknown,) = judged(*before, *after[:2], *tap(61, "x"))
    assert 3 <= unknown.began <= 61 <= unknown.ended


def test_a_password_field_keeps_the_focus_until_another_is_told_to_have_it() -> None:
    start = [window(0), rec.Pressed(1, 110, 110, "left"), field(1.1, True)]
    away, later = rec.Pressed(9, 900, 600, "left"), [*tap(10.5, "x")]
    (removed,) = passwords(judged(*start, away, *later, field(10.8, False, ABOVE), *tap(20, "y")))
    assert 10.8 <= removed.ended < 12
    # Nobody tells: from then on it is unknown who has it, and what is typed is removed all the same.
    unknown = [r for r in judged(*start, away, *tap(20, "y")) if "input" in r.streams]
    assert 11 <= unknown[0].ended < 12
    assert any(r.began <= 20 <= r.ended for r in unknown)
    under = rec.ElementSeen(9, "checkbox", "b", (890, 590, 20, 20), password=False)
    (removed,) = passwords(judged(*start, away, under))
    assert 9 <= removed.ended < 10


def test_a_click_elsewhere_leaves_what_is_known_about_the_focus() -> None:
    away = rec.Pressed(5, 900, 600, "left")
    (removed,) = judged(window(0), field(1, False), away, *tap(8, "a"))
    assert removed.began <= 8 <= removed.ended
    assert not judged(window(0), field(1, False), rec.Pressed(5, 110, 110, "left"), *tap(8, "a"))


@pytest.mark.parametrize(
    "denied",
    [
        window(5, "KeePassXC"), window(5, "firefox", "My Bank - Accounts"),
        window(5, "firefox", "a", private=True), window(5, "x", "Log in", url="https://www.paypal.com/x"),
    ],
)  # fmt: skip
def test_nothing_of_a_denied_window_is_kept(denied: rec.WindowChanged) -> None:
    removed = judged(window(0), denied, window(9))
    whole = [r for r in removed if "input" in r.streams]
    assert whole[0].began <= 4 and whole[0].ended >= 9 and whole[0].place is None
    assert set(whole[0].streams) == {"input", "windows", "elements", "frames", "audio", "words"}


def test_a_denied_window_that_may_still_be_seen_is_painted_over() -> None:
    vault = rec.WindowChanged(5, "KeePassXC", "db", (800, 0, 400, 400))
    beside = rec.WindowChanged(9, "gedit", "a", (0, 0, 700, 700))
    painted = [r for r in judged(vault, beside, window(20, "firefox")) if r.place]
    assert [(r.place, r.began <= 9, 20 <= r.ended < 21) for r in painted] == [
        ((800, 0, 400, 400), True, True)
    ]
    assert [r.ended for r in judged(vault, beside) if r.place] == [float("inf")]


def test_a_secret_that_was_taken_back_or_split_by_a_pause_is_found() -> None:
    key, events = "AKIAIOSFODNN7EXAMPLE", [window(0), field(0.5, False)]
    for n, character in enumerate(key):
        events += tap(5 + n * 0.1 + (4 if n > 9 else 0), character)
    back = [rec.KeyPressed(12 + n * 0.1, "backspace", "\b") for n in range(20)]
    removed = [r for r in judged(*events, *back, found=found_by()) if "input" in r.streams]
    assert min(r.began for r in removed) <= 5 and max(r.ended for r in removed) >= 11


def test_what_a_terminal_asks_for_is_taken_for_a_secret() -> None:
    events: list[rec.Event] = [window(0), field(0.5, False)]
    for n, character in enumerate("sudo ls"):
        events += tap(5 + n * 0.1, character)
    events += [rec.KeyPressed(6, "enter", "\r"), *tap(7, "p"), *tap(7.1, "w")]
    events += [rec.KeyPressed(7.5, "enter", "\r")]
    removed = [r for r in judged(*events) if "input" in r.streams]
    assert len(removed) == 1 and 6 < removed[0].began < 7


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("mail me at john.smith@example.com", "personal"), ("4111 1111 1111 1111", "personal"),
        ("DE89 3704 0044 0532 0130 00", "personal"), ("ghp_" + "a1B2" * 9, "secret"),
        ("my password is hunter2", "secret"), ("xK9mPq2vLw8ZrT4bQ1", "secret"),
        ("aws_secret_access_key = abcdefgh", "secret"), ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "secret"),
    ],
)  # fmt: skip
def test_secrets_and_personal_data_are_found(text: str, kind: str) -> None:
    assert kind in {found.kind for found in found_by().found(text)}


@pytest.mark.parametrize(
    "text",
    ["Mozilla Firefox - New Tab", "report-2024-final.txt - Text Editor", "hello world", "Save"],
)
def test_ordinary_titles_are_left_alone(text: str) -> None:
    assert found_by().clean(text) == text


def test_a_detector_that_fails_takes_everything_for_a_secret() -> None:
    def fails(text: str) -> list[Found]:
        raise RuntimeError("no")

    broken = Detectors([fails])
    assert broken.clean("any") == "[removed]"
    (removed,) = judge_words([word(1, "hello")], broken)
    assert "audio" in removed.streams and "input" in removed.streams


@pytest.mark.parametrize("missing", ["detect_secrets.core.plugins.util", "presidio_analyzer"])
def test_a_detector_that_is_not_installed_holds_the_recording_back(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in sys.modules if n.startswith("presidio_analyzer")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(RedactionError, match="pip install"):
        detectors()


def test_the_list_is_written_once_may_be_edited_and_holds_back_when_broken(tmp_path: Path) -> None:
    path = tmp_path / "never.toml"
    assert Denied.load(path) == Denied()
    path.write_text('apps = ["Secret"]\ntitles = []\nsites = []\n')
    assert Denied.load(path).cause(window(0, "my secret app"))
    assert not Denied.load(path).cause(window(0, "KeePassXC"))
    path.write_text("apps = 1")
    with pytest.raises(RedactionError, match=r"never\.toml"):
        Denied.load(path)
