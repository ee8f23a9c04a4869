"""Tool-call dialects: there and back is the same, or a LossyConversion that says what is lost."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.dialects import DialectError, Frame, LossyConversion
from agent.dialects.frame import scale_to
from agent.dialects.tools import NAMES, State, joined, load, read_all, write_all
from tests.agent.calls import calls, size_of
from trajectory import (
    ACTION_TYPES,
    Click,
    Drag,
    KeyDown,
    KeyUp,
    MouseDown,
    MouseUp,
    Move,
    Scroll,
)
from trajectory.actions import BUTTONS
from trajectory.keys import NAMED_KEYS

few = settings(max_examples=25)  # for each of the dialects
every_dialect = pytest.mark.parametrize("name", NAMES)
frames = st.builds(Frame, st.integers(28, 4000), st.integers(28, 4000)).filter(
    lambda frame: max(frame.width, frame.height) <= 100 * min(frame.width, frame.height)
)
fine_frames = st.builds(Frame, st.integers(1920, 4000), st.integers(1080, 3000))

LOSSY = {
    # asks or looks, and does nothing to the computer
    *("cursor_position", "zoom", "list_apps", "unknown"),
    # has no canonical word
    *("go_forward", "search", "browser_wait_for"),
    # means several actions, of which one can't be said alone
    *("scroll", "hold_key", "type_text_at", "move", "drag"),
}
"""Kinds of calls that may be lost on the way; all others must come back."""


def _kind(call):
    return next(
        call[key] for key in ("action", "type", "action_type", "name", "code") if key in call
    )


# -- dialect to canonical and back -----------------------------------------------------------------


@every_dialect
@few
@given(data=st.data(), frame=fine_frames)
def test_dialect_to_canonical_to_dialect(name, data, frame):
    dialect = load(name)
    width, height = size_of(name, frame)
    if width > frame.width or height > frame.height:
        return  # the model counts finer than pixels
    call = data.draw(calls(name, frame))
    state = State(_place(data, name, frame))
    try:
        actions = read_all(dialect, [call], frame, state)
        written = write_all(dialect, actions, frame, state)
    except LossyConversion:
        assert _kind(call) in LOSSY
        return
    assert list(written) in ([call], *_with_focus(call))


def _with_focus(call):
    """Android's input_text with a place is a click and a text without one."""
    if call.get("action_type") == "input_text" and "x" in call:
        click = {"action_type": "click", "x": call["x"], "y": call["y"]}
        yield [click, {"action_type": "input_text", "text": call["text"]}]


def _place(data, name, frame):
    """Draw a pixel that the dialect can say exactly."""
    width, height = size_of(name, frame)
    x, y = data.draw(st.tuples(st.integers(0, width - 1), st.integers(0, height - 1)))
    return scale_to(x, y, (width, height), frame)


# -- canonical to dialect and back -----------------------------------------------------------------

printable = st.characters(codec="utf-8", exclude_categories=("C", "Z"))
key = st.sampled_from(sorted(NAMED_KEYS)) | st.text(printable, min_size=1, max_size=1)
texts = st.text(st.characters(codec="utf-8"), max_size=20)
lines = st.sampled_from(["", "a", "a\n", "\n", "<>\"'\\", "ß\t"])
turns = st.sampled_from([0, 0, 5, -5, 1, -3])

FIELDS = {
    "count": st.integers(0, 4),
    "button": st.sampled_from(BUTTONS),
    "modifiers": st.sampled_from([(), (), ("ctrl",), ("ctrl", "shift")]),
    "keys": st.lists(key, max_size=3).map(tuple),
    "key": key,
    "text": texts | lines,
    "answer": st.just("") | texts,
    "reason": st.just("") | texts,
    "question": st.just("") | texts,
    "name": st.just("browser") | texts,
    "submit": st.booleans(),
    "duration_ms": st.sampled_from([0, 1000, 2000, 5000, 1500, 7, -1]),
    "timeout_ms": st.just(7),
    "dx": turns,
    "dy": turns,
}


@st.composite
def actions_at(draw, places):
    cls = draw(st.sampled_from(sorted(ACTION_TYPES.values(), key=str)))
    x, y = draw(places)
    fields = FIELDS | {
        "x": st.just(x),
        "y": st.just(y),
        "path": st.lists(places, min_size=2, max_size=3).map(tuple),
    }
    names = [field.name for field in dataclasses.fields(cls)]
    return cls(**{name: draw(fields.get(name, texts)) for name in names})


@every_dialect
@few
@given(data=st.data(), frame=frames)
def test_canonical_to_dialect_to_canonical(name, data, frame):
    dialect = load(name)
    width, height = size_of(name, frame)
    grid = st.tuples(st.integers(0, width - 1), st.integers(0, height - 1))
    places = st.builds(lambda place: scale_to(*place, (width, height), frame), grid)
    actions = data.draw(st.lists(actions_at(places), min_size=1, max_size=3))
    state = State(data.draw(st.none() | places))
    try:
        written = write_all(dialect, actions, frame, state)
    except LossyConversion:
        return
    assert read_all(dialect, written, frame, state) == joined(actions)


@every_dialect
@few
@given(data=st.data(), frame=frames)
def test_a_place_comes_back_within_half_a_unit(name, data, frame):
    dialect = load(name)
    xs, ys = st.integers(0, frame.width - 1), st.integers(0, frame.height - 1)
    x, y = data.draw(st.tuples(xs, ys))
    (click,) = read_all(dialect, write_all(dialect, [Click(x, y)], frame), frame)
    unit = [
        max(1.0, a / b)
        for a, b in zip((frame.width, frame.height), size_of(name, frame), strict=True)
    ]
    assert abs(click.x - x) <= unit[0] and abs(click.y - y) <= unit[1]


# -- what nobody writes -----------------------------------------------------------------------------

FIELD_NAMES = st.sampled_from(
    ["action", "action_type", "type", "name", "args", "arguments", "input", "parameters", "code",
     "x", "y", "coordinate", "text", "keys", "key", "path", "pixels", "direction", "index",
     "duration", "seconds", "start_x", "startX", "button", "status", "actions", "extra"]
)  # fmt: skip
KINDS = st.sampled_from(
    ["click", "left_click", "CLICK", "scroll", "drag", "DRAG_TO", "key", "keypress", "type", "wait",
     "click_at", "swipe", "browser_mouse_click_xy", "computer_use", "computer_call", "DONE",
     "pyautogui.click(", "pyautogui.click(*[1])", "pyautogui.press(5)", "pyautogui.hotkey([[]])"]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9**9) | st.floats() | KINDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELD_NAMES, inner, max_size=5),
    max_leaves=12,
)


@every_dialect
@few
@given(call=st.dictionaries(FIELD_NAMES, JSON, max_size=6))
def test_any_object_is_read_or_a_dialect_error(name, call):
    try:
        load(name).read(call, Frame(100, 100), State((5, 5)))
    except DialectError:
        pass


@every_dialect
@few
@given(data=st.data())
def test_a_field_that_nobody_knows_is_an_error_and_no_loss(name, data):
    frame = Frame(1920, 1080)
    call = data.draw(calls(name, frame))
    inner = next(
        (call[key] for key in ("args", "arguments", "input", "parameters") if key in call), call
    )
    inner["held_by"] = "a robot"
    with pytest.raises(DialectError):
        load(name).read(call, frame, State((1, 1)))


# -- state -----------------------------------------------------------------------------------------


def test_the_state_follows_the_actions_and_lets_go_in_reverse():
    state = State().after(Move(1, 2), KeyDown("ctrl"), KeyDown("shift"), MouseDown("right"))
    assert state == State((1, 2), ("ctrl", "shift"), ("right",))
    assert state.releases() == (MouseUp("right"), KeyUp("shift"), KeyUp("ctrl"))
    assert state.after(*state.releases()) == State((1, 2))
    assert State().after(Drag(((0, 0), (5, 6)))).pointer == (5, 6)


def test_only_a_move_to_the_same_place_is_joined():
    scroll = Scroll(3, 4, dy=1)
    assert joined([Move(3, 4), scroll]) == (scroll,)
    assert joined([Move(3, 5), scroll]) == (Move(3, 5), scroll)
    assert joined([Move(3, 4), MouseDown()]) == (Move(3, 4), MouseDown())


def test_an_unknown_dialect_is_named():
    with pytest.raises(ValueError, match="telepathy"):
        load("telepathy")
