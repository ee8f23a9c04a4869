"""Pages with forms: lists, fields in any layout, completion, popups, search, pages of results."""

from __future__ import annotations

import re

from sandbox.families.miniwob.oracles.clicks import quoted
from sandbox.families.miniwob.sight import Decision, Script, Sight, quote
from sandbox.families.protocol import NoWay

SUBMIT = "named('button', 'Submit')"


def _choose_list(sight: Sight) -> Decision:
    match = re.search(r"Select (.+) from the list", sight.said)
    wanted = match.group(1) if match else ""
    options, chosen, focused = sight.js(
        "(s => [Array.from(s.options).map(o => o.text), s.selectedIndex,"
        " document.activeElement === s])(one('#options'))"
    )
    if options[chosen] == wanted:
        return sight.click(f"{wanted} is chosen, I submit.", SUBMIT)
    if not focused:
        return sight.keys("I go to the list with Tab.", "tab")
    way = "down" if options.index(wanted) > chosen else "up"
    return sight.keys(f"{wanted} is further {way}.", way)


def _scroll_list(sight: Sight) -> Decision:
    match = re.search(r"Select (.+) from the scroll list", sight.said)
    wanted = match.group(1).split(", ") if match else []
    chosen = sight.js("Array.from(one('#options').selectedOptions).map(o => o.text)")
    missing = [name for name in wanted if name not in chosen]
    extra = [name for name in chosen if name not in wanted]
    if not missing and not extra:
        return sight.click("All are chosen, I submit.", SUBMIT)
    name = missing[0] if missing else wanted[0]
    option = f"Array.from(one('#options').options).find(o => o.text === {quote(name)})"
    return sight.click(
        f"I choose {name}.", option, modifiers=("ctrl",) if chosen and not extra else ()
    )


def _sequence_2(sight: Sight) -> Decision:
    match = re.search(
        r'the (\d).. radio button and enter the number "(-?\d+)" into the (\d)', sight.said
    )
    if match is None:
        raise NoWay(f"nothing to do in {sight.said!r}")
    radio, number, field = match.groups()
    if not sight.js(f"one('input[type=radio][value=\"{radio}\"]').checked"):
        return sight.click(
            f"I choose radio button {radio}.", f"one('input[type=radio][value=\"{radio}\"]')"
        )
    return sight.form([(f"one('#input-{field}')", number, f"Field {field}")], SUBMIT, '"Submit"')


def _sequence_3(sight: Sight) -> Decision:
    match = re.search(r"Choose (.+) from the dropdown", sight.said)
    wanted, button = (match.group(1) if match else ""), quoted(sight)
    if sight.js("one('#dropdown').value") == wanted:
        return sight.click(
            f'{wanted} is chosen, I click "{button}".', f"named('#buttons button', {quote(button)})"
        )
    if sight.js("one('.selectric-wrapper').classList.contains('selectric-open')"):
        return sight.click(f"I choose {wanted}.", f"named('.selectric-items li', {quote(wanted)})")
    return sight.click("I open the list.", "one('.selectric')")


def _movies(sight: Sight) -> Decision:
    match = re.search(r"Search for (.+) movies directed by (.+) from year (\d+)", sight.said)
    if match is None:
        raise NoWay(f"nothing to search for in {sight.said!r}")
    fields = [
        (
            f"all('#area input').find(i => /{label}/.test("
            "i.closest('p, .row, tr, .field, .ui-entry').textContent))",
            text, name,
        )
        for label, text, name in zip(
            ("Genre", "Director", "Year|Date"), match.groups(),
            ("Genre", "Director", "Year"), strict=True,
        )
    ]  # fmt: skip
    return sight.form(fields, "one('#area button, #area .final, #area .ui-submit')", "the button")


def _login_popup(sight: Sight) -> Decision:
    if sight.js("one('#popup-cancel') !== null"):
        return sight.click("A popup is in the way, I click Cancel.", "one('#popup-cancel')")
    user, password = re.findall(r'"([^"]*)"', sight.said)[:2]
    return sight.form(
        [("one('#username')", user, "Username"), ("one('#password')", password, "Password")],
        "one('#subbtn')", '"OK"',
    )  # fmt: skip


def _autocomplete(sight: Sight) -> Decision:
    start, *rest = re.findall(r'"([^"]*)"', sight.said)
    end = rest[0] if rest else ""
    value, focused, menu = sight.js(
        "(e => [e.value, document.activeElement === e, shown(one('.ui-autocomplete'))])(one('#tags'))"
    )
    fits = sight.js(f"ui_utils.COUNTRIES.includes({quote(value)})") and (
        value.startswith(start) and value.endswith(end)
    )
    if fits and menu:
        return sight.keys(f"{value} fits, I press Enter.", "enter")
    if fits:
        return sight.click(f"{value} fits, I submit.", "one('#subbtn')")
    if menu:
        return sight.keys("I go down the list.", "down")
    if focused and value == start:
        return sight.wait("The list opens soon, I wait.", 400)
    todo = sight.field("one('#tags')", start, "The field")
    if todo is None:
        return sight.click("I click the field.", "one('#tags')")
    return todo


def _search(sight: Sight) -> Decision:
    match = re.search(r'"(.+?)" and press "Search", then find and click the (\d)', sight.said)
    if match is None:
        raise NoWay(f"nothing to search for in {sight.said!r}")
    name, number = match.group(1), int(match.group(2))
    todo = sight.field("one('#search-text')", name, "The field")
    if todo is not None:
        return todo
    if not sight.js("one('#page-content a') !== null"):
        return sight.click("I search for it.", "one('#search')")
    result = f"one('.search-title[data-result=\"{number - 1}\"]')"
    if sight.js(f"shown({result})"):
        return sight.click(f"This is result {number}.", result)
    page = (number - 1) // 3 + 1
    return sight.click(f"Result {number} is on page {page}.", f"named('#pagination a', '{page}')")


def _phone_book(sight: Sight) -> Decision:
    match = re.search(r"Find (.+) in the contact book and click on their (\w+)", sight.said)
    if match is None:
        raise NoWay(f"nobody to find in {sight.said!r}")
    name, what = match.groups()
    if sight.js("one('#contact .name').textContent") == name:
        return sight.click(f"This is {name}, I click the {what}.", f"one('#contact a.{what}')")
    return sight.click(f"This is not {name}, I turn the page.", "one('#pagination .next a')")


SCRIPTS: dict[str, Script] = {
    "choose-list": _choose_list,
    "click-scroll-list": _scroll_list,
    "form-sequence-2": _sequence_2,
    "form-sequence-3": _sequence_3,
    "multi-layouts": _movies,
    "multi-orderings": _movies,
    "login-user-popup": _login_popup,
    "use-autocomplete": _autocomplete,
    "use-autocomplete-nodelay": _autocomplete,
    "search-engine": _search,
    "phone-book": _phone_book,
}
