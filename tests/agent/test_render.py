"""One prompt format: what a model is shown, and what it is taught to write."""

import pytest

from agent.dialects import LossyConversion, frame_of, load
from agent.render import render, target_text
from trajectory import Actor, Click, Element, Observation, Scroll, Step, Type

ELEMENTS = (
    Element("button", "ok", (10, 10, 40, 20)),
    Element("textbox", "user", (10, 40, 80, 20), value="bob", focused=True),
)
SEEN = Observation("a" * 64, 1280, 720, ELEMENTS)


def _steps(*actions):
    return [
        Step(
            n,
            Observation(f"{n}" * 64, 1280, 720, ELEMENTS),
            f"I think {n}.",
            action,
            Actor.AGENT,
        )
        for n, action in enumerate(actions)
    ]


def test_the_element_prompt_is_short_and_says_what_is_done_and_seen():
    system, user = render(
        'Click on the "ok" button.',
        _steps(Click(20, 50), Type("bob")),
        SEEN,
        dialect=load("element"),
        observation_kind="elements",
    )
    assert system["role"] == "system"
    assert user["content"] == (
        'Task: Click on the "ok" button.\nDone:\n1. click textbox "user"\n2. type "bob"\n'
        'Screen:\n[1] button "ok"\n[2] textbox "user" value "bob" focused'
    )


def test_an_element_prompt_is_bounded():
    many = tuple(Element("text", "word " * 50, (0, n, 10, 10)) for n in range(200))
    buttons = tuple(Element("button", f"b{n}", (20, n, 10, 10)) for n in range(3))
    crowded = Observation("b" * 64, 1280, 720, many + buttons)
    *_, user = render(
        "x",
        _steps(*[Type(f"{n}") for n in range(30)]),
        crowded,
        dialect=load("element"),
        observation_kind="elements",
    )
    lines = user["content"].splitlines()
    screen = lines[lines.index("Screen:") + 1 :]
    assert len(screen) == 60
    assert max(map(len, screen)) < 80
    assert screen[-3:] == ['[201] button "b0"', '[202] button "b1"', '[203] button "b2"']
    assert [line for line in lines if line.startswith(("1.", "5.", "6."))] == [
        '1. type "25"',
        '5. type "29"',
    ]


def test_a_screenshot_prompt_keeps_the_last_pictures_and_all_the_text():
    messages = render(
        "Open it.",
        _steps(*[Click(n, 0) for n in range(7)]),
        SEEN,
        dialect=load("box"),
        observation_kind="screenshot",
        history_n=3,
    )
    pictures = [
        part["sha256"]
        for m in messages
        if isinstance(m["content"], list)
        for part in m["content"]
        if part["type"] == "image"
    ]
    assert pictures == ["5" * 64, "6" * 64, "a" * 64]
    assert sum(m["role"] == "assistant" for m in messages) == 7
    assert "## Action Space" in messages[0]["content"]
    assert "Open it." in messages[0]["content"]
    assert messages[-1]["role"] == "user"


@pytest.mark.parametrize("history_n", [0, 1])
def test_only_the_current_picture_without_history(history_n):
    messages = render(
        "x",
        _steps(Click(1, 1)),
        SEEN,
        dialect=load("point"),
        observation_kind="screenshot",
        history_n=history_n,
    )
    assert sum(isinstance(m["content"], list) for m in messages) == 1


def test_what_a_hand_did_stays_in_the_context_in_words():
    messages = render(
        "x",
        _steps(Scroll(5, 5, dy=2)),
        SEEN,
        dialect=load("box"),
        observation_kind="screenshot",
    )
    assert messages[-2]["content"] == "Thought: I think 0.\nAction: scroll down"


def test_a_target_reads_back():
    frame = frame_of(SEEN)
    for name in ("box", "point", "element"):
        dialect = load(name)
        text = target_text("It is\nhere. Action: none", Click(30, 20), frame, dialect)
        parsed = dialect.parse(text, frame)
        assert parsed.thought == "It is here. Action: none"
        assert isinstance(parsed.action, Click)
        # A thousandth of this frame is 1.28 pixels wide.
        assert abs(parsed.action.x - 30) <= 1 and abs(parsed.action.y - 20) <= 1


def test_a_target_that_would_lose_something_is_refused():
    with pytest.raises(LossyConversion, match="no listed element"):
        target_text("x", Click(600, 600), frame_of(SEEN), load("element"))


def test_elements_that_were_not_asked_for_are_an_error():
    blind = Observation("c" * 64, 10, 10)
    with pytest.raises(ValueError, match="without them"):
        render("x", [], blind, dialect=load("element"), observation_kind="elements")
