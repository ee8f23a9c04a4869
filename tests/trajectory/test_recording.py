"""Events survive their line, and what is no event is refused by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajectory import recording as events

_SECONDS = st.floats(0, 1e6, allow_nan=False)
_POINT = st.integers(-5000, 20000)
_EVENTS = st.one_of(
    st.builds(events.Moved, _SECONDS, _POINT, _POINT),
    st.builds(events.Pressed, _SECONDS, _POINT, _POINT, st.sampled_from(["left", "back"])),
    st.builds(events.KeyPressed, _SECONDS, st.text(max_size=9), st.text(max_size=9), st.booleans()),
    st.builds(events.Committed, _SECONDS, st.text()),
    st.builds(events.WindowChanged, _SECONDS, st.text(), st.text(), st.tuples(*[_POINT] * 4)),
    st.builds(
        events.ElementSeen, _SECONDS, st.text(), st.text(), st.tuples(*[_POINT] * 4),
        st.booleans(), st.none() | st.booleans(),
    ),
    st.builds(events.ClockRead, _SECONDS, _SECONDS),
)  # fmt: skip


@given(_EVENTS)
def test_an_event_is_what_its_line_says(event: events.Event) -> None:
    line = events.to_line(event)
    assert "\n" not in line
    assert events.from_line(line) == event


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"kind":"moved","t":1,"x":2', "no JSON"),
        ("[]", "known kind"),
        ('{"kind":"telepathy","t":1}', "known kind"),
        ('{"kind":"moved","t":1,"x":2}', "y"),
        ('{"kind":"moved","t":1,"x":"2","y":3}', "x is '2'"),
        ('{"kind":"moved","t":true,"x":2,"y":3}', "t is True"),
        ('{"kind":"stopped","t":NaN}', "t is nan"),
        ('{"kind":"stopped","t":1,"mood":"fine"}', "unknown mood"),
        ('{"kind":"pressed","t":1,"x":2,"y":3,"button":"teeth"}', "button is 'teeth'"),
    ],
)
def test_what_is_no_event_is_refused(line: str, says: str) -> None:
    with pytest.raises(events.EventError, match=says):
        events.from_line(line)
