"""Whatever a model writes is an action or a DialectError: no number, no depth, no text breaks a reader."""

import pytest

from agent.dialects import DialectError, Frame, ParseError, load
from agent.dialects.tools import State
from agent.dialects.tools import load as load_tools
from trajectory import Type, Wait

FRAME = Frame(1280, 720)
LONG = "9" * 5000


@pytest.mark.parametrize("seconds", ["9" * 400, LONG, "3601"])
def test_a_wait_of_more_than_an_hour_can_not_be_read(seconds):
    with pytest.raises(ParseError, match="seconds"):
        load("box").parse(f"Action: wait(time='{seconds}')", FRAME)
    assert load("box").parse("Action: wait(time='3600')", FRAME).action == Wait(3_600_000)


def test_a_number_of_thousands_of_digits_is_no_element_and_no_place():
    with pytest.raises(ParseError):
        load("element").parse(f"Action: click(element={LONG})", FRAME)
    with pytest.raises(ParseError):
        load("point").parse(f"Action: click(point='<point>{LONG} 1</point>')", FRAME)


@pytest.mark.parametrize(
    "name, call",
    [
        ("openai", {"type": "click", "button": "left", "x": 10**400, "y": 1}),
        ("openai", {"type": "click", "button": "left", "x": float("nan"), "y": 1}),
        ("osworld", {"action_type": "SCROLL", "parameters": {"dx": 10**30, "dy": 1}}),
        ("qwen", {"name": "computer_use", "arguments": "[" * 100_000}),
        ("pyautogui", {"code": "a" + ".b" * 900}),
        ("pyautogui", {"code": f"x = {'-' * 900}1"}),
        ("pyautogui", {"code": f"pyautogui.click(0x{'f' * 9000}, 1)"}),
        ("pyautogui", {"code": f"pyautogui.keyDown(0x{'f' * 9000})"}),
    ],
)
def test_a_call_beyond_every_measure_is_a_dialect_error(name, call):
    with pytest.raises(DialectError):
        load_tools(name).read(call, FRAME, State(pointer=(1, 1)))


@pytest.mark.parametrize("name", ["box", "point", "element"])
@pytest.mark.parametrize(
    "text", ["<answer>42</answer>", "<function=f>", "a <tool_call> b", "(<answer>"]
)
def test_a_tag_that_is_typed_is_typed(name, text):
    dialect = load(name)
    written = dialect.write(Type(text), FRAME)
    assert dialect.parse(f"Thought: I type it.\nAction: {written}", FRAME).action == Type(text)
    assert dialect.parse(f"I type it. Action: {written}", FRAME).action == Type(text)


def test_a_tag_after_a_thought_about_a_call_is_the_call():
    reply = "Action: click(point=<point>1 2</point>) is what I want.\n<function=wait></function>"
    assert load("point").parse(reply, FRAME).action == Wait(5000)
