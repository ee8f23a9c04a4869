"""Pages with sliders, a spinner, a colour field, a calendar of one day."""

from __future__ import annotations

import json
import re

from sandbox.families.miniwob.oracles.dragging import SUBMIT
from sandbox.families.miniwob.sight import Decision, Script, Sight
from sandbox.families.protocol import NoWay
from trajectory import Scroll


def _slide(sight: Sight, slider: str, goal: int) -> Decision | None:
    """Return what brings a slider nearer to `goal`: a drag from afar, the arrow keys from near."""
    value, low, high, upright, handle, box, focused = sight.js(
        f"""(e => {{
          const h = e.querySelector('.ui-slider-handle'), r = h.getBoundingClientRect(),
            b = e.getBoundingClientRect(), o = (n) => $(e).slider('option', n);
          return [$(e).slider('value'), o('min'), o('max'), o('orientation') === 'vertical',
            [r.left + r.width / 2, r.top + r.height / 2], [b.left, b.top, b.width, b.height],
            document.activeElement === h];
        }})(one('{slider}'))"""
    )
    if value == goal:
        return None
    if abs(value - goal) <= 3 and focused:
        way = "right" if goal > value else "left"
        return sight.keys(f"It is at {value}, I press {way}.", way)
    part = (goal - low) / (high - low)
    left, top, width, height = box
    if upright:
        end = (handle[0], top + height * (1 - part))
    else:
        end = (left + width * part, handle[1])
    if abs(value - goal) <= 3 or round(end[0] - handle[0]) == round(end[1] - handle[1]) == 0:
        return sight.tap("I click the handle.", (handle[0], handle[1]))
    return sight.drag(f"It is at {value}, I drag it to {goal}.", [(handle[0], handle[1]), end])


def _slider(sight: Sight) -> Decision:
    match = re.search(r"Select (-?\d+) with", sight.said)
    if match is None:
        raise NoWay(f"no number in {sight.said!r}")
    todo = _slide(sight, "#slider", int(match.group(1)))
    return todo or sight.click("The slider is right, I submit.", SUBMIT)


def _sliders(sight: Sight) -> Decision:
    match = re.search(r"\[.*\]", sight.said)
    goals = json.loads(match.group()) if match else []
    for number, goal in enumerate(goals, start=1):
        todo = _slide(sight, f"#slider-{number}", goal)
        if todo is not None:
            return todo
    return sight.click("All sliders are right, I submit.", SUBMIT)


def _sequence(sight: Sight) -> Decision:
    match = re.search(r"Select (-?\d+) with the slider, click the (\d)", sight.said)
    if match is None:
        raise NoWay(f"nothing to do in {sight.said!r}")
    todo = _slide(sight, "#slider", int(match.group(1)))
    if todo is not None:
        return todo
    box = f"one('#checkbox-{match.group(2)}')"
    if not sight.js(f"{box}.checked"):
        return sight.click(f"I check box {match.group(2)}.", box)
    return sight.click("Both are right, I submit.", SUBMIT)


def _spinner(sight: Sight) -> Decision:
    match = re.search(r"Select (-?\d+) with the spinner", sight.said)
    goal = int(match.group(1)) if match else 0
    value = int(sight.js("parseInt(one('#spinner').value)"))
    if value == goal:
        return sight.click("The number is right, I submit.", SUBMIT)
    way = "up" if goal > value else "down"
    return sight.click(f"It is at {value}, I go {way}.", f"one('.ui-spinner-{way}')")


def _colour(sight: Sight) -> Decision:
    """Enter the colour's six digits: the picker next to the field reads them too."""
    shade = sight.js("(e => e ? getComputedStyle(e).backgroundColor : null)(one('#query .cc'))")
    if shade is None:
        name = sight.said.removeprefix("Select ").split(" ")[0]
        digits = str(sight.js(f"ui_utils.colorNameToHex('{name}')")).removeprefix("#").upper()
    else:
        parts = re.findall(r"\d+", str(shade))[:3]
        digits = "".join(f"{int(part):02X}" for part in parts)
    if str(sight.js("one('#col').value")).upper() == digits:
        if sight.js("hit(one('#subbtn')) === null"):
            return sight.click(
                "The picker lies over the button, I click beside it.", "one('#query')"
            )
        return sight.click("The colour is right, I submit.", SUBMIT)
    todo = sight.field("one('#col')", digits, "The field")
    if todo is None:
        raise NoWay("the colour can't be entered")
    return todo


def _calendar(sight: Sight) -> Decision:
    """Drag over free half hours of the window that is asked for, then name the event."""
    match = re.search(
        r'Create a ([\d.]+) (hour|min)s? event named "(.+)", between (\d+)(AM|PM) and', sight.said
    )
    if match is None:
        raise NoWay(f"no event in {sight.said!r}")
    length, unit, name, hour, half = match.groups()
    count = round(float(length) * 2) if unit == "hour" else round(float(length) / 30)
    first = (int(hour) % 12 + (12 if half == "PM" else 0)) * 2
    if sight.js("one('#create-event') !== null"):
        return sight.form([("one('#event-name')", name, "The name")],
                          "one('#create-event .create')", '"Create"')  # fmt: skip
    found = sight.js(f"{_ROOM}({first}, {count})")
    if found is None:
        raise NoWay("no room is free in the calendar")
    start, across = found
    cells = [f"document.getElementById('hh-{n}')" for n in (start, start + count - 1)]
    # The event is drawn beside the cells where a font is wide: let go where it is, not where they are.
    (top, bottom), (edge, low) = sight.js(
        f"""((cells, start, count) => {{
          const area = one('#area'), box = area.getBoundingClientRect();
          return [cells.map(c => (r => r.top + r.height / 2)(c.getBoundingClientRect())),
            [box.left + 125, box.top - area.scrollTop + start * 20.42 + count * 20 - 1]];
        }})([{cells[0]}, {cells[1]}], {start}, {count})"""
    )
    if bottom > 203:
        return "It is later, I scroll down.", _wheel(sight, edge, 1)
    if min(top, low) < 57:
        return "It is earlier, I scroll up.", _wheel(sight, edge, -1)
    return sight.drag(
        "These half hours are free.",
        [(across, top), (across, (top + 2 * bottom) / 3), (across, bottom), (edge, bottom),
         (edge, low), (edge + 1, low)],
    )  # fmt: skip


def _wheel(sight: Sight, x: float, notches: int) -> Scroll:
    column, row = sight.at((x, 130))
    return Scroll(column, row, dy=notches)


# The first half hour of the window from which `count` are free, and a column where no event lies.
_ROOM = """((first, count) => {
  const taken = all('.event').map(e => e.getBoundingClientRect());
  for (let n = first; n + count <= first + 8; n++) {
    const cells = [...Array(count).keys()]
      .map(k => document.getElementById('hh-' + (n + k)).getBoundingClientRect());
    for (const part of [.5, .8]) {
      const x = cells[0].left + cells[0].width * part;
      if (cells.every(c => !taken.some(t => t.left < x && x < t.right && t.top < c.bottom
          && c.top < t.bottom))) return [n, x];
    }
  }
  return null;
})"""


SCRIPTS: dict[str, Script] = {
    "use-slider": _slider,
    "use-slider-2": _sliders,
    "form-sequence": _sequence,
    "use-spinner": _spinner,
    "use-colorwheel": _colour,
    "use-colorwheel-2": _colour,
    "daily-calendar": _calendar,
}
