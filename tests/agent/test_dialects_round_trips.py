"""What is written in a dialect is read back as it was meant, whatever the action, the frame and the text."""

import dataclasses

from hypothesis import assume, given
from hypothesis import strategies as st

from agent.dialects import Frame, LossyConversion, ParseError, load
from agent.dialects.frame import from_frame, smart_resize, to_frame
from agent.render import target_text
from trajectory import ACTION_TYPES, Click, Drag, Element, Finish, LongPress, Move, Scroll, Type
from trajectory.actions import BUTTONS
from trajectory.keys import NAMED_KEYS

FRAME = Frame(1000, 1000)
POINT = load("point")

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
