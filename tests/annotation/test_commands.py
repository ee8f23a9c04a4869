import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.hand.commands import CommandError, format, parse
from trajectory import (
    BUTTONS,
    AskUser,
    Click,
    Drag,
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
from trajectory.keys import MODIFIERS, NAMED_KEYS

pixels = st.integers(0, 4000)
buttons = st.sampled_from(BUTTONS)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
keys = st.sampled_from(sorted(NAMED_KEYS)) | st.characters(
    exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]
)
milliseconds = st.integers(0, 100_000)
actions = st.one_of(
    st.builds(
        Click,
        pixels,
        pixels,
        buttons,
        st.integers(1, 9),
        st.lists(st.sampled_from(MODIFIERS), unique=True, max_size=3).map(tuple),
    ),
    st.builds(Move, pixels, pixels),
    st.builds(MouseDown, buttons),
    st.builds(MouseUp, buttons),
    st.builds(
        Drag,
        st.lists(st.tuples(pixels, pixels), min_size=2, max_size=5).map(tuple),
        buttons,
    ),
    st.builds(Scroll, pixels, pixels, st.integers(-50, 50), st.integers(-50, 50)),
    st.builds(LongPress, pixels, pixels, milliseconds),
    st.builds(KeyDown, keys),
    st.builds(KeyUp, keys),
    st.builds(Hotkey, st.lists(keys, min_size=1, max_size=4).map(tuple)),
    st.builds(Type, texts, st.booleans()),
    st.builds(Wait, milliseconds),
    st.builds(Navigate, texts),
    st.just(NavigateBack()),
    st.builds(OpenApp, texts),
    st.builds(Shell, texts, milliseconds),
    st.builds(Finish, texts),
    st.builds(Fail, texts),
    st.builds(AskUser, texts),
)


@given(actions)
def test_what_is_formatted_is_read_back(action):
    assert parse(format(action)) == action


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("click(412, 305)", Click(412, 305)),
        ("  Click ( 412,305 , right , double ) ", Click(412, 305, "right", 2)),
        ("click(0, 0, hold ctrl+shift)", Click(0, 0, modifiers=("ctrl", "shift"))),
        ('type("hello, world", submit)', Type("hello, world", submit=True)),
        ("type('it\\'s \"so\"')", Type('it\'s "so"')),
        ('type("a\nb")', Type("a\nb")),
        ("hotkey(ctrl+c)", Hotkey(("ctrl", "c"))),
        ("hotkey(control, Return)", Hotkey(("ctrl", "enter"))),
        ('hotkey(ctrl, ",")', Hotkey(("ctrl", ","))),
        ("scroll(640, 300, down 3)", Scroll(640, 300, dy=3)),
        ("scroll(640, 300, up, left 2)", Scroll(640, 300, dx=-2, dy=-3)),
        ("drag(1, 2, 3, 4, right)", Drag(((1, 2), (3, 4)), "right")),
        ("wait()", Wait(1000)),
        ("finish()", Finish()),
        ('fail("no such file")', Fail("no such file")),
    ],
)
def test_people_may_write(text, action):
    assert parse(text) == action


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "write an action as name"),
        ("click 4 5", "write an action as name"),
        ("clik(4, 5)", "did you mean click?"),
        ("click(4)", "click needs y as a whole number"),
        ("click(a, 5)", "click needs x as a whole number, not 'a'"),
        ("click(4, -5)", "y of click can't be -5"),
        ("click(4, 5, sideways)", "click does not know 'sideways'"),
        ("click(4, 5, hold a)", "hold takes ctrl, shift, alt, meta, not a"),
        ("type(hello)", 'put the text in quotes: type("hello")'),
        ('type("hello)', "not closed"),
        ('type("a" "b")', "comma is missing"),
        ("hotkey(ctrl, banana)", "unknown key 'banana'"),
        ("hotkey()", "at least one key"),
        ("scroll(1, 2)", "which way"),
        ("drag(1, 2)", "two points"),
        ("wait(5, 6)", "does not know what to do with '6'"),
        ("click(4, 5,)", "nothing after the last comma"),
        ("click(,4)", "nothing before a comma"),
        ('type("\\q")', "bad backslash"),
        ('type("\\u0000")', "no character"),
        ("scroll(1, 2, down 99999)", "takes a direction and notches"),
    ],
)
def test_a_mistake_is_named(text, message):
    with pytest.raises(
        CommandError,
        match=message.replace("(", r"\(").replace(")", r"\)").replace("?", r"\?"),
    ):
        parse(text)


def test_a_place_outside_the_screen_is_refused():
    assert parse("click(1279, 719)", frame=(1280, 720)) == Click(1279, 719)
    with pytest.raises(CommandError, match="outside the screen, which is 1280 × 720"):
        parse("drag(0, 0, 1280, 5)", frame=(1280, 720))
