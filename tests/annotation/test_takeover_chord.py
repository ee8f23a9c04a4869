"""The chord that hands back is the page's, not the task's."""

from typing import Any

from annotation.hand.reduce import reduce
from annotation.session.takeover import without_chord
from trajectory import Click, Hotkey


def test_the_chord_that_hands_back_is_no_step(hand: Any) -> None:
    script = hand().click(5, 6).wait(1)
    script.key(script.CTRL, True).key(script.ALT, True).key(script.ALT, False)
    script.key(script.CTRL, False)
    assert [step.action for step in without_chord(reduce(script.events).steps)] == [Click(5, 6)]


def test_a_chord_with_a_key_stays(hand: Any) -> None:
    script = hand()
    script.chord(script.CTRL, ord("c"))
    steps = without_chord(reduce(script.events).steps)
    assert [step.action for step in steps] == [Hotkey(("ctrl", "c"))]
