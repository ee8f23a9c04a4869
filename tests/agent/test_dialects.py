"""Dialects accept what public models emit, name what they can't read, and lose nothing quietly."""

import pytest

from agent.dialects import Frame, LossyConversion, ParseError, load
from agent.dialects.frame import smart_resize
from agent.dialects.keys import read_keys
from trajectory import (
    AskUser,
    Click,
    Drag,
    Element,
    Fail,
    Finish,
    Hotkey,
    KeyDown,
    KeyUp,
    MouseDown,
    MouseUp,
    Move,
    Navigate,
    NavigateBack,
    OpenApp,
    Scroll,
    Shell,
    Type,
    Wait,
)

FRAME = Frame(1000, 1000)
POINT = load("point")

# -- what models emit ------------------------------------------------------------------------------

EMITTED = [
    ("Action: click(start_box='<|box_start|>(10,20)<|box_end|>')", Click(10, 20)),
    ("Action: click(start_box='(10,20)')", Click(10, 20)),
    ("Action: click(start_box=(10, 20))", Click(10, 20)),
    ("Action: click(start_box='[10,20]')", Click(10, 20)),
    ("Action: click(start_box='[10, 20, 30, 40]')", Click(20, 30)),
    ("Action: click(start_box='<|box_start|>(10,20),(30,40)<|box_end|>')", Click(20, 30)),
    ("Action: click(start_box='<bbox>10 20 30 40</bbox>')", Click(20, 30)),
    ("Action: click(start_box='(0,0)')", Click(0, 0)),
    ("Action: click(start_box='(1000,1000)')", Click(999, 999)),
    ("Action: click(point='<point>10 20</point>')", Click(10, 20)),
    ("Action: click(point='<point>10.4 20</point>')", Click(10, 20)),
    ("Action: click(start_point='<point>10 20</point>')", Click(10, 20)),
    ('Action: click(start_box="(10,20)")', Click(10, 20)),
    ("Action：click(start_box='(10,20)')", Click(10, 20)),
    ("Thought: I do. Action: click(start_box='(10,20)')", Click(10, 20)),
    ("Action: left_single(start_box='(10,20)')", Click(10, 20)),
    ("Action: left_double(start_box='(10,20)')", Click(10, 20, count=2)),
    ("Action: right_single(start_box='(10,20)')", Click(10, 20, button="right")),
    (
        "Action: drag(start_box='(1,2)', end_box='(3,4)')",
        Drag(((1, 2), (3, 4))),
    ),
    (
        "Action: drag(start_point='<point>1 2</point>', end_point='<point>3 4</point>')",
        Drag(((1, 2), (3, 4))),
    ),
    ("Action: hotkey(key='ctrl c')", Hotkey(("ctrl", "c"))),
    ("Action: hotkey(key='ctrl+c')", Hotkey(("ctrl", "c"))),
    ("Action: hotkey(key='ctrl+-')", Hotkey(("ctrl", "-"))),
    ("Action: hotkey(key='Page_Down')", Hotkey(("pagedown",))),
    ("Action: type(content='hi\\n')", Type("hi", submit=True)),
    ("Action: type(content='a\\nb')", Type("a\nb")),
    ("Action: type(content='say \\'hi\\' and \\\"ho\\\"')", Type("say 'hi' and \"ho\"")),
    ("Action: type(content='I'm here')", Type("I'm here")),
    ("Action: type(content='f(x), y)')", Type("f(x), y)")),
    ("Action: type(content='Action: click(x)')", Type("Action: click(x)")),
    ("Action: scroll(start_box='(1,2)', direction='down')", Scroll(1, 2, dy=5)),
    ("Action: scroll(start_box='(1,2)', direction='left')", Scroll(1, 2, dx=-5)),
    ("Action: scroll(direction='up')", Scroll(500, 500, dy=-5)),
    ("Action: wait()", Wait(5000)),
    ("Action: finished()", Finish()),
    ("Action: finished(content='42')", Finish("42")),
    ("Action: call_user()", AskUser()),
    ("Action: navigate(content='https://a.example/?q=1')", Navigate("https://a.example/?q=1")),
    ("Action: press(key='ctrl')", KeyDown("ctrl")),
    ("Action: release(key='ctrl')", KeyUp("ctrl")),
    ("Action: wait()\n</Output>", Wait(5000)),
    ("<think>a</think><computer_env>Action: wait()</computer_env>", Wait(5000)),
    ("<think>a</think><answer>42</answer>", Finish("42")),
    (
        "<seed:tool_call><function=click><parameter=point><point>10 20</point></parameter>"
        "</function></seed:tool_call>",
        Click(10, 20),
    ),
    (
        '<seed:tool_call><function name="type"><parameter name="content" string="true">a'
        "</parameter></function></seed:tool_call>",
        Type("a"),
    ),
    (
        "<seed:tool_call><function=execute_bash><parameter=command>ls -l</parameter></function>",
        Shell("ls -l"),
    ),
]


@pytest.mark.parametrize("name", ["box", "point"])
@pytest.mark.parametrize(("text", "action"), EMITTED)
def test_what_public_models_emit_is_read(name, text, action):
    assert load(name, "thousandth").parse(text, FRAME).action == action


@pytest.mark.parametrize(
    ("text", "thought"),
    [
        ("Thought: I look.\nAction: wait()", "I look."),
        ("Thought: one\ntwo\nAction: wait()", "one\ntwo"),
        ("<think>deep</think>\nThought: I look.\nAction: wait()", "deep\nThought: I look."),
        (
            "Reflection: bad.\nAction_Summary: click it.\nAction: wait()",
            "Reflection: bad.\nAction_Summary: click it.",
        ),
        ("<Thought>hm</Thought>\nAction_Summary: x\nAction: wait()", "hm\nAction_Summary: x"),
        ("Action: wait()", ""),
    ],
)
def test_the_thought_is_what_comes_before(text, thought):
    assert POINT.parse(text, FRAME).thought == thought


@pytest.mark.parametrize(
    "text",
    [
        "Action: click(point='<point>1 2</point>')\n\ntype(content='a')\n\nwait()",
        "<seed:tool_call><function=click><parameter=point><point>1 2</point></parameter></function>"
        "<function=type><parameter=content>a</parameter></function>"
        "<function=wait></function></seed:tool_call>",
    ],
)
def test_the_first_action_is_taken_and_the_rest_is_kept(text):
    parsed = POINT.parse(text, FRAME)
    assert parsed.action == Click(1, 2)
    assert parsed.more == (Type("a"), Wait(5000))


def test_a_press_at_a_place_is_a_move_and_a_press():
    parsed = POINT.parse("Action: mouse_down(point='<point>1 2</point>')", FRAME)
    assert (parsed.action, *parsed.more) == (Move(1, 2), MouseDown())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("I would click it.", "I would click it"),
        ("Action: fly(to='moon')", "fly"),
        ("Action: nothing to call", "nothing to call"),
        ("Action: click(start_box='(1,2", "never closed"),
        ("Action: click(start_box='(1,2)'", "ends early"),
        ("Action: click(start_box='here')", "here"),
        ("Action: click(start_box='(1,2,3)')", "3 coordinates"),
        ("Action: click(start_box='(1,2000)')", "outside"),
        ("Action: click(start_box='(-1,2)')", "outside"),
        ("Action: click()", "start_box"),
        ("Action: click(start_box='(1,2)', start_box='(1,2)')", "twice"),
        ("Action: hotkey(key='ctrl hyper')", "hyper"),
        ("Action: hotkey(key='')", "key"),
        ("Action: scroll(start_box='(1,2)', direction='sideways')", "sideways"),
        ("Action: wait(time='soon')", "soon"),
        ("Action: press_home()", "press_home"),
        ('Action: click(start_box=\'__import__("os").system("x")\')', "coordinates"),
    ],
)
def test_what_can_not_be_read_is_named(text, names):
    with pytest.raises(ParseError, match=names):
        load("box", "thousandth").parse(text, FRAME)


# -- element numbers -------------------------------------------------------------------------------

LISTED = Frame(
    1280,
    720,
    (
        Element("text", "panel", (0, 0, 200, 200)),
        Element("button", "ok", (10, 10, 40, 20)),
        Element("text", "gap", (300, 300, 0, 0)),
    ),
)


def test_an_element_number_is_its_centre():
    dialect = load("element")
    assert dialect.parse("Action: click(element=2)", LISTED).action == Click(30, 20)
    assert dialect.parse("Action: click(element='[2]')", LISTED).action == Click(30, 20)
    assert dialect.write(Click(11, 11), LISTED) == "click(element=2)"
    assert dialect.write(Click(150, 150), LISTED) == "click(element=1)"


@pytest.mark.parametrize("number", ["0", "4", "x", "-1"])
def test_an_element_that_is_not_there_is_named(number):
    with pytest.raises(ParseError, match="element"):
        load("element").parse(f"Action: click(element={number})", LISTED)


def test_only_elements_that_a_prompt_shows_can_be_meant():
    crowd = Frame(100, 900, tuple(Element("button", str(n), (0, n * 9, 9, 9)) for n in range(99)))
    with pytest.raises(ParseError, match="61"):
        load("element").parse("Action: click(element=61)", crowd)
    with pytest.raises(LossyConversion):
        load("element").write(Click(4, 60 * 9 + 4), crowd)


# -- coordinates -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "resized"),
    [
        ((1080, 1920), (1092, 1932)),
        ((768, 1366), (756, 1372)),
        ((2670, 1216), (2660, 1204)),
    ],
)
def test_smart_resize_gives_the_measured_sizes(size, resized):
    assert smart_resize(*size) == resized


def test_smart_resize_keeps_its_limits():
    height, width = smart_resize(10_000, 10_000)
    assert height * width <= 16384 * 28 * 28
    height, width = smart_resize(50, 60)
    assert height * width >= 100 * 28 * 28
    with pytest.raises(ValueError, match="200 : 1"):
        smart_resize(10, 2001)


def test_the_conventions_of_the_public_models():
    full = Frame(1920, 1080)
    text = "Action: click(start_box='(100,200)')"
    assert load("box", "thousandth").parse(text, full).action == Click(192, 216)
    assert load("box", "resized").parse(text, full).action == Click(99, 198)
    assert load("box", "frame").parse(text, full).action == Click(100, 200)


# -- keys, and what can not be said ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("ctrl++", ("ctrl", "+")),
        ("+", ("+",)),
        ("-", ("-",)),
        ("ctrl-c", ("ctrl", "c")),
        ("ctrl shift t", ("ctrl", "shift", "t")),
        ("ctrl + c", ("ctrl", "c")),
        ("ctrl +", ("ctrl", "+")),
        ("alt+F4", ("alt", "f4")),
        ("Return", ("enter",)),
        ("ArrowDown", ("down",)),
    ],
)
def test_keys(text, wanted):
    assert read_keys(text) == wanted


@pytest.mark.parametrize(
    "action",
    [Fail("x"), Scroll(1, 1, 5, 5), Click(1, 1, modifiers=("ctrl",)), Click(1, 1, count=3),
     Drag(((1, 1), (2, 2), (3, 3))), Wait(3), AskUser("what?"), MouseUp("right"), Type("")],
)  # fmt: skip
def test_what_a_dialect_can_not_say_is_refused(action):
    for name in ("box", "point", "element"):
        with pytest.raises(LossyConversion):
            load(name).write(action, FRAME)


def test_both_say_the_same_things():
    for action in (OpenApp("files"), NavigateBack(), MouseUp()):
        for name in ("box", "point"):
            dialect = load(name)
            assert dialect.parse("Action: " + dialect.write(action, FRAME), FRAME).action == action
