"""Dialects accept what public models emit, name what they can't read, and lose nothing quietly."""

import dataclasses

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent.dialects import Frame, LossyConversion, ParseError, load
from agent.dialects.frame import from_frame, smart_resize, to_frame
from agent.dialects.keys import read_keys
from agent.render import target_text
from trajectory import (
    ACTION_TYPES,
    AskUser,
    Click,
    Drag,
    Element,
    Fail,
    Finish,
    Hotkey,
    KeyDown,
    KeyUp,
    LongPress,
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
from trajectory.actions import BUTTONS
from trajectory.keys import NAMED_KEYS

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


# -- round trips -----------------------------------------------------------------------------------

frames = st.builds(Frame, st.integers(28, 4000), st.integers(28, 4000))
conventions = st.sampled_from(["thousandth", "resized", "frame"])
words = st.text(st.characters(codec="utf-8"), max_size=20)
printable = st.characters(codec="utf-8", exclude_categories=("C", "Z"))
keys = st.lists(st.sampled_from(sorted(NAMED_KEYS)) | st.text(printable, min_size=1, max_size=1))

FIELDS = {
    "count": st.integers(1, 3),
    "button": st.sampled_from(BUTTONS),
    "modifiers": st.just(()) | st.just(("ctrl",)),
    "keys": keys.map(tuple),
    "key": st.sampled_from(sorted(NAMED_KEYS)) | words,
    "submit": st.booleans(),
    "duration_ms": st.sampled_from([1000, 5000, 7]),
    "timeout_ms": st.sampled_from([30_000, 7]),
    "dx": st.sampled_from([0, 0, 5, -5, 3]),
    "dy": st.sampled_from([0, 0, 5, -5, 3]),
}


@st.composite
def actions_in(draw, frame):
    xs, ys = st.integers(0, frame.width - 1), st.integers(0, frame.height - 1)
    fields = FIELDS | {
        "x": xs,
        "y": ys,
        "path": st.lists(st.tuples(xs, ys), min_size=2, max_size=3).map(tuple),
    }
    cls = draw(st.sampled_from(sorted(ACTION_TYPES.values(), key=str)))
    names = [field.name for field in dataclasses.fields(cls)]
    return draw(st.builds(cls, **{name: fields.get(name, words) for name in names}))


def _places(action):
    match action:
        case Drag(path=path):
            return list(path)
        case Click() | Move() | Scroll() | LongPress():
            return [(action.x, action.y)]
    return []


def _without_places(action):
    match action:
        case Drag():
            return dataclasses.replace(action, path=((0, 0), (0, 0)))
        case Click() | Move() | Scroll() | LongPress():
            return dataclasses.replace(action, x=0, y=0)
    return action


@given(st.data(), frames, st.sampled_from(["box", "point"]), conventions)
def test_canonical_to_dialect_and_back_or_a_lossy_conversion(data, frame, name, coordinates):
    assume(max(frame.width, frame.height) / min(frame.width, frame.height) <= 100)
    action = data.draw(actions_in(frame))
    dialect = load(name, coordinates)
    try:
        text = target_text("I see.", action, frame, dialect)
    except LossyConversion:
        return
    parsed = dialect.parse(text, frame)
    assert _without_places(parsed.action) == _without_places(action)
    assert parsed.more == ()
    for found, meant in zip(_places(parsed.action), _places(action), strict=True):
        written = from_frame(*meant, coordinates, frame)
        unit = [
            max(1.0, side / span)
            for side, span in zip(
                (frame.width, frame.height),
                {"thousandth": (1000, 1000), "frame": (frame.width, frame.height)}.get(
                    coordinates, smart_resize(frame.height, frame.width)[::-1]
                ),
                strict=True,
            )
        ]
        assert abs(found[0] - meant[0]) <= unit[0] and abs(found[1] - meant[1]) <= unit[1]
        # dialect -> canonical -> dialect -> canonical: nothing wanders.
        assert to_frame(*from_frame(*found, coordinates, frame), coordinates, frame) == found
        assert written[0] >= 0 <= written[1]
    assert (
        dialect.parse(target_text("", parsed.action, frame, dialect), frame).action == parsed.action
    )


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(1001, 4000), st.integers(1001, 4000))
def test_dialect_to_canonical_to_dialect_is_the_identity_where_pixels_are_finer(x, y, w, h):
    assume(x < 1000 > y)
    text = f"click(point='<point>{x} {y}</point>')"
    frame = Frame(w, h)
    assert POINT.write(POINT.parse(f"Action: {text}", frame).action, frame) == text


@given(st.data())
def test_element_numbers_come_back_as_the_same_place(data):
    boxes = st.tuples(
        st.integers(0, 90), st.integers(0, 90), st.integers(0, 60), st.integers(0, 60)
    )
    elements = data.draw(st.lists(boxes, min_size=1, max_size=8))
    frame = Frame(150, 150, tuple(Element("button", "b", box) for box in elements))
    number = data.draw(st.integers(1, len(elements)))
    verb = data.draw(
        st.sampled_from(
            ["click(element={n})", "left_double(element={n})", "right_single(element={n})",
             "drag(element={n}, to=1)", "scroll(element={n}, direction='down')"]
        )
    )  # fmt: skip
    dialect = load("element")
    action = dialect.parse("Action: " + verb.format(n=number), frame).action
    again = dialect.parse("Action: " + dialect.write(action, frame), frame).action
    assert again == action


@given(words, words)
def test_any_text_survives_type_and_finish(content, thought):
    for name in ("box", "point", "element"):
        dialect = load(name)
        for action in (Type(content), Finish(content)):
            try:
                text = target_text(thought, action, FRAME, dialect)
            except LossyConversion:
                assert action == Type(content) and (not content or content.endswith("\n"))
                continue
            assert dialect.parse(text, FRAME).action == action


@given(st.text(max_size=200))
def test_any_text_is_read_or_a_parse_error(text):
    for name in ("box", "point", "element"):
        for reply in (text, f"Action: {text}", f"Action: click({text}", f"<function={text}"):
            try:
                load(name).parse(reply, FRAME)
            except ParseError:
                pass


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
