"""Pages with dates and times: the calendar that pops up, and fields that take digits."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sandbox.families.miniwob.sight import Decision, Script, Sight, quote
from sandbox.families.protocol import NoWay
from trajectory import Hotkey

SUBMIT = "named('button', 'Submit')"


def pick_date(sight: Sight, date: str) -> Decision | None:
    """Return what brings the pop-up calendar's field to "MM/DD/YYYY"; None if it is there."""
    if sight.js("$(':animated').length > 0"):
        return sight.wait("The calendar is still moving, I wait.")
    if sight.js("one('#datepicker').value") == date:
        return None
    if not sight.js("shown(one('#ui-datepicker-div'))"):
        return sight.click("I open the calendar.", "one('#datepicker')")
    month, day, year = (int(part) for part in date.split("/"))
    here = sight.js(
        "(t => [new Date('1 ' + words(t.querySelector('.ui-datepicker-title'))).getMonth() + 1,"
        " +words(t.querySelector('.ui-datepicker-year'))])(one('#ui-datepicker-div'))"
    )
    if [month, year] == here:
        return sight.click(f"I choose the {day}.", f"named('#ui-datepicker-div td a', '{day}')")
    way = "next" if (year, month) > (here[1], here[0]) else "prev"
    return sight.click("It is another month.", f"one('.ui-datepicker-{way}')")


def _choose(sight: Sight) -> Decision:
    match = re.search(r"\d\d/\d\d/\d{4}", sight.said)
    if match is None:
        raise NoWay(f"no date in {sight.said!r}")
    return pick_date(sight, match.group()) or sight.click("The date is set, I submit.", SUBMIT)


def _digits(sight: Sight, value: str, keys: Sequence[str]) -> Decision:
    """Enter a field of parts key by key, from its first part on; again if it came out wrong."""
    if sight.js("one('#tt').value") == value:
        return sight.click("It is entered, I submit.", SUBMIT)
    pressed = 0
    for step in reversed(sight.steps):
        if not isinstance(step.action, Hotkey):
            break
        pressed += 1
    if sight.js("document.activeElement !== one('#tt')") or pressed >= len(keys):
        left, top, height = sight.js(
            "(r => [r.left, r.top, r.height])(one('#tt').getBoundingClientRect())"
        )
        return sight.tap("I click the first part of the field.", (left + 9, top + height / 2))
    return sight.keys(f"{keys[pressed]!r} is next.", keys[pressed])


def _enter_date(sight: Sight) -> Decision:
    match = re.search(r"(\d\d)/(\d\d)/(\d{4})", sight.said)
    if match is None:
        raise NoWay(f"no date in {sight.said!r}")
    month, day, year = match.groups()
    return _digits(sight, f"{year}-{month}-{day}", [*month, *day, *year])


def _enter_time(sight: Sight) -> Decision:
    match = re.search(r"(\d+):(\d\d)\s*([AP])M", sight.said)
    if match is None:
        raise NoWay(f"no time in {sight.said!r}")
    hour, minute, half = int(match.group(1)), match.group(2), match.group(3)
    value = f"{hour % 12 + (12 if half == 'P' else 0):02}:{minute}"
    return _digits(sight, value, [*f"{hour:02}", *minute, half.lower()])


def _city(sight: Sight, field: str, place: str) -> Decision | None:
    """Return what brings an airport field to an entry that names `place`; None if it has one."""
    value, focused, menu = sight.js(
        f"(e => [e.value, document.activeElement === e,"
        f" all('.ui-autocomplete').some(shown)])(one('{field}'))"
    )
    if place in value and sight.js(f"DOMESTIC_FLIGHTS.includes({quote(value)})"):
        return (
            sight.keys(f"{value} is right, I press Enter.", "enter") if focused and menu else None
        )
    if focused and menu and value:
        return sight.keys("I go down the list.", "down")
    if focused and value == place:
        return sight.wait("The list opens soon, I wait.", 400)
    return sight.field(f"one('{field}')", place, "The field")


def _book(sight: Sight) -> Decision:
    match = re.search(
        r"Book the (\w+) one-way flight from: (.+) to: (.+) on ([\d/]+)\.", sight.said
    )
    if match is None:
        raise NoWay(f"no flight in {sight.said!r}")
    what, start, end, date = match.groups()
    if not sight.js("shown(one('#menu'))"):
        attribute = "data-price" if what == "cheapest" else "data-duration"
        best = (
            f"all('.flight').reduce((best, f) => +f.querySelector('[{attribute}]')"
            f".getAttribute('{attribute}') < +best.querySelector('[{attribute}]')"
            f".getAttribute('{attribute}') ? f : best)"
        )
        return sight.click(f"This is the {what} flight.", f"{best}.querySelector('.flight-price')")
    for field, place in (("#flight-from", start), ("#flight-to", end)):
        todo = _city(sight, field, place)
        if todo is not None:
            return todo
    return pick_date(sight, date) or sight.click("All is filled in, I search.", "one('#search')")


SCRIPTS: dict[str, Script] = {
    "choose-date": _choose,
    "choose-date-easy": _choose,
    "choose-date-medium": _choose,
    "choose-date-nodelay": _choose,
    "enter-date": _enter_date,
    "enter-time": _enter_time,
    "book-flight": _book,
    "book-flight-nodelay": _book,
}
