"""The codec gives back what it was given, reads old versions, and names what it can't read."""

import dataclasses
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trajectory
from trajectory import (
    ACTION_TYPES,
    Actor,
    Element,
    FormatError,
    Observation,
    Outcome,
    Recall,
    Sample,
    Step,
    Summary,
)
from trajectory.actions import BUTTONS, Drag
from trajectory.keys import NAMED_KEYS, canonical_key

ints = st.integers(-(2**31), 2**31)
text = st.text(max_size=30)
points = st.tuples(ints, ints)
FIELDS = {
    "x": ints,
    "y": ints,
    "dx": ints,
    "dy": ints,
    "count": st.integers(1, 3),
    "duration_ms": st.integers(0, 10**6),
    "timeout_ms": st.integers(1, 10**6),
    "button": st.sampled_from(BUTTONS),
    "modifiers": st.lists(text, max_size=3).map(tuple),
    "keys": st.lists(text, min_size=1, max_size=3).map(tuple),
    "path": st.lists(points, min_size=2, max_size=5).map(tuple),
    "submit": st.booleans(),
}


def _instances(cls):
    names = [field.name for field in dataclasses.fields(cls)]
    return st.builds(cls, **{name: FIELDS.get(name, text) for name in names})


actions = st.one_of([_instances(cls) for cls in ACTION_TYPES.values()])
elements = st.builds(Element, text, text, st.tuples(ints, ints, ints, ints), text, st.booleans())
observations = st.builds(
    Observation,
    text,
    ints,
    ints,
    st.none() | st.lists(elements, max_size=3).map(tuple),
    text,
    text,
    st.floats(allow_nan=False, allow_infinity=False),
)
samples = st.builds(
    Sample,
    st.lists(ints, max_size=4).map(tuple),
    st.lists(ints, max_size=4).map(tuple),
    st.lists(st.floats(-50, 0), max_size=4).map(tuple),
    text,
)
recalls = st.builds(
    Recall,
    ints,
    ints,
    text,
    st.lists(st.builds(Summary, ints, ints, text, text), max_size=2).map(tuple),
    ints,
)
steps = st.builds(
    Step,
    ints,
    observations,
    text,
    actions,
    st.sampled_from(Actor),
    text,
    st.booleans(),
    text,
    st.none() | samples,
    st.none() | recalls,
)
trajectories = st.builds(
    trajectory.Trajectory,
    text,
    text,
    text,
    st.lists(steps, max_size=3).map(tuple),
    st.none() | st.sampled_from(Outcome),
    st.none() | st.floats(-1, 1),
    text,
    text,
    st.dictionaries(text, text, max_size=3),
)


@given(actions)
def test_an_action_survives_the_round_trip(action):
    record = json.loads(json.dumps(trajectory.action_to_dict(action)))
    assert trajectory.action_from_dict(record) == action


@given(st.lists(trajectories, max_size=3))
def test_trajectories_survive_the_round_trip(values):
    lines = list(trajectory.dump_lines(values))
    assert len(lines) == len(values) and all(line.endswith("\n") for line in lines)
    assert list(trajectory.load_lines(lines)) == values


@given(trajectories)
def test_the_same_trajectory_gives_the_same_bytes(value):
    line = next(iter(trajectory.dump_lines([value])))
    again = next(iter(trajectory.dump_lines(trajectory.load_lines([line]))))
    assert line == again


@given(
    st.recursive(
        st.none() | st.booleans() | ints | text, lambda v: st.lists(v) | st.dictionaries(text, v)
    )
)
def test_garbage_raises_a_format_error_and_nothing_else(garbage):
    for read in (trajectory.action_from_dict, trajectory.from_dict, trajectory.step_from_dict):
        with pytest.raises(FormatError):
            read(garbage)


@pytest.mark.parametrize(
    ("record", "named"),
    [
        ({"type": "clik", "x": 1, "y": 2}, "clik"),
        ({"type": "click", "x": 1}, "click.y"),
        ({"type": "click", "x": 1, "y": "2"}, "click.y"),
        ({"type": "click", "x": True, "y": 2}, "click.x"),
        ({"type": "click", "x": 1, "y": 2, "z": 3}, "'z'"),
        ({"type": "click", "x": 1, "y": 2, "button": "third"}, "button"),
        ({"type": "drag", "path": [[1, 2]]}, "drag.path"),
        ([], "list"),
    ],
)
def test_a_broken_action_is_named(record, named):
    with pytest.raises(FormatError, match=named):
        trajectory.action_from_dict(record)


def test_zero_is_a_coordinate():
    assert trajectory.target(trajectory.Click(0, 0)) == (0, 0)
    assert trajectory.target(Drag(((0, 0), (5, 5)))) == (0, 0)


def test_a_broken_line_is_named_with_its_file_and_number():
    good = '{"format": 2, "id": "a", "task": "t", "instruction": "", "steps": []}'
    with pytest.raises(FormatError, match=r"data\.jsonl:3: "):
        list(trajectory.load_lines([good, "", '{"format": 2}'], name="data.jsonl"))


def test_version_1_keeps_loading():
    golden = Path(__file__).parent / "golden_v1.jsonl"
    (value,) = trajectory.load_lines(golden.read_text().splitlines(), name=golden.name)
    assert value.steps[0].actor is Actor.HUMAN
    assert value.steps[0].trainable
    assert value.steps[0].action == trajectory.Click(10, 0)


def test_version_2_keeps_loading():
    golden = Path(__file__).parent / "golden_v2.jsonl"
    (value,) = trajectory.load_lines(golden.read_text().splitlines(), name=golden.name)
    assert value.steps[0].recall is None
    assert value.steps[0].sample == Sample((1, 2), (3,), (-0.5,), "v1")
    (again,) = trajectory.load_lines(trajectory.dump_lines([value]))
    assert again == value


def test_version_3_is_what_is_written():
    golden = Path(__file__).parent / "golden_v3.jsonl"
    lines = golden.read_text().splitlines(keepends=True)
    (value,) = trajectory.load_lines(lines, name=golden.name)
    assert value.steps[0].recall == Recall(
        since=2, pictures=1, episodic="Steps 1-2: x", written=(Summary(0, 1, "x", "words"),),
        prompt_tokens=9,
    )  # fmt: skip
    assert list(trajectory.dump_lines([value])) == lines


@pytest.mark.parametrize(
    ("recall", "named"),
    [({"since": "x"}, "recall.since"), ({"written": [{"first": 0}]}, "recall.written.last")],
)
def test_a_broken_recall_is_named(recall, named):
    with pytest.raises(FormatError, match=named):
        trajectory.recall_from_dict(recall)


def test_a_version_from_the_future_is_refused_with_the_readable_ones():
    with pytest.raises(FormatError, match=r"99.*readable: \[1, 2, 3\]"):
        trajectory.from_dict({"format": 99})


def test_keys_have_one_name():
    assert canonical_key("Control_L") == canonical_key("CTRL") == "ctrl"
    assert canonical_key(" ") == "space"
    assert canonical_key("A") == "A"
    assert all(canonical_key(key) == key for key in NAMED_KEYS)
    with pytest.raises(ValueError, match="hyper"):
        canonical_key("hyper")


def test_the_package_needs_only_the_standard_library():
    import subprocess
    import sys

    code = (
        "import sys; before = set(sys.modules); import trajectory; import trajectory.keys;"
        "new = {m.split('.')[0] for m in set(sys.modules) - before};"
        "print(sorted(new - set(sys.stdlib_module_names) - {'trajectory'}))"
    )
    package = Path(trajectory.__file__).parents[1]
    result = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == "[]"


def test_floats_are_exact():
    value = Observation("s", 1, 1, captured_at=math.pi)
    record = json.loads(json.dumps(trajectory.observation_to_dict(value)))
    assert trajectory.observation_from_dict(record) == value
