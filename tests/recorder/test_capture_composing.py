"""What an input method took, as the widget's own signals tell it; no program that is real yet."""

from __future__ import annotations

import itertools

import pytest

from recorder.capture.composing import Composing
from trajectory.recording import Committed


class Hand:
    """Presses keys and has a widget tell of its text, a little later each."""

    def __init__(self, shows_preedit: bool = False) -> None:
        self.composing = Composing(shows_preedit)
        self.told: list[Committed] = []
        self._clock = itertools.count(1)

    def keys(self, *names: str, shortcut: bool = False) -> float:
        t = 0.0
        for name in names:
            t = next(self._clock)
            named = len(name) > 1 and name != "space"
            text = "" if named or shortcut else " " if name == "space" else name
            self.told += self.composing.pressed(t, name, text, shortcut=shortcut)
        return t

    def insert(self, *texts: str, delete: str = "") -> None:
        if delete:
            self.composing.deleted(delete)
        for text in texts:
            self.composing.inserted(next(self._clock), text)

    def typed(self, *names: str) -> None:
        """Keys that put in what they type."""
        for name in names:
            self.keys(name)
            self.insert("\n" if name == "enter" else " " if name == "space" else name)

    def end(self) -> list[tuple[str, float | None, float]]:
        self.told += self.composing.settle()
        return [(c.text, c.since, c.t) for c in self.told]


def test_keys_that_type_themselves_are_no_input_method() -> None:
    hand = Hand()
    hand.typed("h", "e", "l", "l", "o", "space", "é", "enter")
    assert hand.end() == []


def test_keys_become_what_was_chosen_and_the_key_that_chose_it_is_one_of_them() -> None:
    hand = Hand()
    hand.typed("a")
    since = hand.keys("n")
    until = hand.keys("i", "h", "a", "o", "space")
    hand.insert("你好")
    assert hand.end() == [("你好", since, until)]
    hand.typed("b", "enter")
    assert len(hand.end()) == 1


def test_a_key_that_ends_a_syllable_and_types_itself_is_told_apart() -> None:
    hand = Hand()
    hand.keys("r", "m", "f", "space")
    hand.insert("글", " ")
    assert [text for text, _, _ in hand.end()] == ["글"]


def test_what_follows_at_once_has_its_own_keys() -> None:
    hand = Hand()
    first = hand.keys("n")
    hand.keys("i", "space")
    hand.insert("你")
    second = hand.keys(",")
    hand.insert("，")
    hand.typed("b")
    assert hand.end() == [("你", first, first + 2), ("，", second, second)]


def test_letters_that_were_left_as_they_are_take_their_enter_with_them() -> None:
    hand = Hand()
    since, until = hand.keys("n"), hand.keys("i", "enter")
    hand.insert("ni")
    hand.typed("enter")
    assert hand.end() == [("ni", since, until)]


@pytest.mark.parametrize("completed", ["ld", "ld of mine", "世界"])
def test_what_a_program_completes_or_pastes_is_not_told(completed: str) -> None:
    hand = Hand()
    hand.typed("w", "o", "r")
    hand.insert(completed)
    hand.keys("tab")
    hand.insert(completed)
    hand.keys("j")  # does nothing, or something that types nothing
    hand.keys("v", shortcut=True)
    hand.insert(completed)
    assert hand.end() == []


def test_a_program_that_puts_more_in_than_was_typed_is_no_input_method() -> None:
    hand = Hand()
    hand.keys("(")
    hand.insert("()")
    hand.typed("t", "e", "h")
    hand.insert("the", delete="teh")
    assert hand.end() == []


def test_what_is_still_being_composed_in_a_page_is_not_told() -> None:
    hand = Hand(shows_preedit=True)
    since = hand.keys("n")
    hand.insert("n")
    hand.typed("i")
    hand.keys("h")
    hand.insert(" h")
    hand.told += hand.composing.settle()
    hand.keys("a", "o")
    hand.insert("ao")
    hand.told += hand.composing.settle()
    until = hand.keys("space")
    hand.insert("你好", delete="ni hao")
    assert hand.end() == [("你好", since, until)]
    other = Hand(shows_preedit=True)
    other.keys("n", "i")
    other.insert("に")
    assert other.end() == []


def test_a_key_that_is_told_after_its_text_is_found_all_the_same() -> None:
    hand = Hand()
    hand.insert("a")
    hand.keys("a")
    assert hand.end() == []
    hand.keys("b")
    hand.insert("b")
    assert hand.end() == []


def test_long_text_and_keys_long_ago_are_left_alone() -> None:
    hand = Hand()
    hand.keys("x")
    hand.insert("好" * 500)
    assert hand.end() == []
    hand.keys("y", *["a"] * 60)
    hand.insert("好")
    assert hand.end() == []
