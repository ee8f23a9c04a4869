"""Pages on which the right things are clicked: boxes, tabs, sections, menus, trees."""

from __future__ import annotations

import re

from sandbox.families.miniwob.sight import Decision, Script, Sight, quote
from sandbox.families.protocol import NoWay
from trajectory import Click

SUBMIT = "named('button', 'Submit')"


def quoted(sight: Sight) -> str:
    found = re.search(r'"(.+)"', sight.said)
    if found is None:
        raise NoWay(f"nothing is quoted in {sight.said!r}")
    return found.group(1)


def _transfer(sight: Sight) -> Decision:
    return sight.click("I click the button ONE.", "named('button', 'ONE')")


def _unicode(sight: Sight) -> Decision:
    name = quoted(sight)
    return sight.click(f'I click "{name}".', f"named('#area button', {quote(name)})")


def _boxes(sight: Sight, wanted: list[str]) -> Decision:
    todo = sight.js(
        f"(w => all('#area label').map(l => [words(l), l.querySelector('input').checked])"
        f".find(([t, on]) => w.includes(t) !== on))({quote_list(wanted)})"
    )
    if todo is None:
        return sight.click("All boxes are right, I submit.", SUBMIT)
    name, on = todo
    return sight.click(
        f'I {"clear" if on else "check"} "{name}".', f"named('#area label', {quote(name)})"
    )


def quote_list(texts: list[str]) -> str:
    return "[" + ", ".join(quote(text) for text in texts) + "]"


def _listed(sight: Sight, before: str) -> list[str]:
    found = re.search(rf"{before} (.*) and click Submit", sight.said)
    if found is None:
        raise NoWay(f"nothing to select in {sight.said!r}")
    return [] if found.group(1) == "nothing" else found.group(1).split(", ")


def _checkboxes(sight: Sight) -> Decision:
    return _boxes(sight, _listed(sight, "Select"))


def _similar(sight: Sight) -> Decision:
    asked = quote_list(_listed(sight, "similar to"))
    wanted = sight.js(f"SYNONYMS.filter(group => {asked}.some(w => group.includes(w))).flat()")
    return _boxes(sight, list(wanted))


def _tab_link(sight: Sight) -> Decision:
    text = quote(quoted(sight))
    link = f"all('.alink').find(e => e.textContent === {text})"
    tab = sight.js(
        f"(e => {{ const p = e && e.closest('.ui-tabs-panel'); return p ? p.id : null; }})({link})"
    )
    if tab is None:
        # Only one page does this: its second tab is empty, and opening it is what is asked for.
        return sight.click("The link is not here, I open the other tab.", "all('.ui-tab a')[1]")
    if sight.js(f"shown(all('#{tab} .alink').find(e => e.textContent === {text}))"):
        return sight.click(
            f"I click the link {text}.", f"all('#{tab} .alink').find(e => e.textContent === {text})"
        )
    return sight.click("The link is in another tab, I open it.", f"one('a[href=\"#{tab}\"]')")


def _section_link(sight: Sight) -> Decision:
    if sight.js("$(':animated').length > 0"):
        return sight.wait("The section is still opening, I wait.")
    link = f"all('.alink').find(e => e.textContent === {quote(quoted(sight))})"
    if sight.js(f"shown({link})"):
        return sight.click(f'I click the link "{quoted(sight)}".', link)
    return sight.click(
        "The link is in a closed section, I open it.",
        f"(p => p.previousElementSibling)({link}.closest('.ui-accordion-content'))",
    )


def _section(sight: Sight) -> Decision:
    if sight.js("$(':animated').length > 0"):
        return sight.wait("The section is still opening, I wait.")
    if sight.js("shown(one('.ui-accordion-content'))"):
        return sight.click("The section is open, I submit.", "one('#subbtn')")
    return sight.click("I open the section.", "one('#area h3')")


def _menu(sight: Sight) -> Decision:
    path = sight.said.removeprefix("Select ").split(">")
    for depth, name in enumerate(path):
        item = f"all('#menu .ui-menu-item > div').find(e => e.textContent === {quote(name)})"
        if not sight.js(f"shown({item})"):
            return sight.wait("The submenu opens soon, I wait.", 400)
        if depth == len(path) - 1:
            return sight.click(f'I click "{name}".', item)
        below = f"all('#menu .ui-menu-item > div').find(e => e.textContent === {quote(path[depth + 1])})"
        if not sight.js(f"shown({below})"):
            if sight.js(f"{item}.matches(':hover')"):
                return sight.wait(f'"{name}" is about to open, I wait.', 400)
            return sight.move(f'I point at "{name}".', _seen(sight, item))
    raise NoWay(f"no path in {sight.said!r}")


def _seen(sight: Sight, target: str) -> tuple[float, float]:
    place = sight.js(f"hit({target})")
    if place is None:
        raise NoWay(f"{target} lies under something")
    return float(place[0]), float(place[1])


def _menu_icon(sight: Sight) -> Decision:
    label = sight.js(
        "(i => i ? Object.keys(PROBLEM_SET).find(k => i.classList.contains(PROBLEM_SET[k])) : null)"
        "(one('#query .ui-icon'))"
    )
    # The first quoted word is the button's, the last one the item's.
    label = label or re.findall(r'"([^"]+)"', sight.said)[-1]
    if not sight.js("shown(one('#menu'))"):
        return sight.click("I open the menu.", "one('#open-menu')")
    item = f"all('#menu .ui-menu-item > div').find(e => words(e) === {quote(label)} || e.textContent === {quote(label)})"
    if sight.js(f"shown({item})"):
        return sight.click(f'I click "{label}".', item)
    parent = "named('#menu .ui-menu-item > div', 'Playback')"
    if sight.js(f"{parent}.matches(':hover')"):
        return sight.wait("Playback is about to open, I wait.", 400)
    return sight.move("It is under Playback, I point there.", _seen(sight, parent))


def _pie(sight: Sight) -> Decision:
    label = quote(quoted(sight))
    place = sight.js(
        f"(e => e && shown(e) && hit(e))(all('#divWheel text').find(e => e.textContent === {label}))"
    )
    clicks = len(sight.actions(Click))
    if place and clicks >= 3:
        # In the page without delay the first item takes no click at all.
        raise NoWay(f"the pie does not take a click on {label}")
    if place:
        return sight.tap(f"I click {label}.", place)
    if clicks:
        return sight.wait("The pie is opening, I wait.")
    return sight.click("I open the pie.", "one('#divWheel [id*=spreader]')")


def _shades(sight: Sight) -> Decision:
    match = re.search(r"shades of (\w+)", sight.said)
    colour = match.group(1) if match else ""
    todo = f"one('#area span[data-color={colour}]:not(.selected)')"
    if sight.js(f"{todo} !== null"):
        return sight.click(f"This is a shade of {colour}, I select it.", todo)
    return sight.click("All shades are selected, I submit.", "one('#submit')")


def _tree(sight: Sight) -> Decision:
    name = quote(quoted(sight))
    span = f"all('#tree span').find(e => e.textContent === {name})"
    if sight.js(f"shown({span})"):
        return sight.click(f"I click {name}.", span)
    closed = (
        f"(e => {{ let last = null; for (let n = e.parentElement.parentElement; n.id !== 'tree';"
        f" n = n.parentElement) if (n.tagName === 'LI' && !shown(n.querySelector('ul'))) last = n;"
        f" return last.querySelector('.hitarea'); }})({span})"
    )
    return sight.click("It is in a closed folder, I open that.", closed)


def _number(sight: Sight) -> Decision:
    todo = sight.js(
        f"PATTERNS[{int(quoted(sight))}].flat().findIndex((v, i) =>"
        " all('#checkboxes input')[i].checked !== (v === 1))"
    )
    if todo < 0:
        return sight.click("The number is drawn, I submit.", SUBMIT)
    return sight.click(
        f"Row {todo // 4 + 1}, box {todo % 4 + 1} belongs to it.",
        f"all('#checkboxes input')[{todo}]",
    )


def _odd_even(sight: Sight) -> Decision:
    rows = sight.js(
        "all('.row').map(r => [parseInt(words(r.querySelector('.display-number'))),"
        " words(r.querySelector('button.selected') || document.createElement('i'))])"
    )
    for index, (number, chosen) in enumerate(rows):
        wanted = "Odd" if number % 2 else "Even"
        if chosen != wanted:
            return sight.click(
                f"{number} is {wanted.lower()}.",
                f"all('.row')[{index}].querySelector('.{wanted.lower()}')",
            )
    return sight.click("All are marked, I submit.", "one('#submit')")


SCRIPTS: dict[str, Script] = {
    "click-test-transfer": _transfer,
    "unicode-test": _unicode,
    "click-checkboxes-large": _checkboxes,
    "click-checkboxes-transfer": _checkboxes,
    "click-checkboxes-soft": _similar,
    "click-tab-2-easy": _tab_link,
    "click-tab-2-medium": _tab_link,
    "click-tab-2-hard": _tab_link,
    "click-collapsible": _section,
    "click-collapsible-2": _section_link,
    "click-collapsible-2-nodelay": _section_link,
    "click-menu": _menu,
    "click-menu-2": _menu_icon,
    "click-pie": _pie,
    "click-pie-nodelay": _pie,
    "click-shades": _shades,
    "navigate-tree": _tree,
    "number-checkboxes": _number,
    "odd-or-even": _odd_even,
}
