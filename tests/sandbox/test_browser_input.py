"""What is sent to a page arrives as sent: places, buttons, keys, text; checked by the page itself."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from sandbox.provider import ActionFailed
from sandbox.providers.browser import BrowserPage, Fleet, PageSpec
from trajectory import (
    Action,
    Click,
    Drag,
    Hotkey,
    KeyDown,
    KeyUp,
    LongPress,
    MouseDown,
    MouseUp,
    Move,
    Scroll,
    Type,
)

PAGE = """<!doctype html><body style="margin:0;height:3000px"><textarea id="a"
style="position:fixed;left:10px;top:10px;width:200px;height:60px"></textarea><script>
const seen = [];
for (const kind of ['mousedown', 'mouseup', 'mousemove', 'click', 'dblclick', 'contextmenu'])
  addEventListener(kind, (e) => seen.push([kind, e.clientX, e.clientY, e.button, e.buttons, e.detail,
    [e.ctrlKey && 'ctrl', e.shiftKey && 'shift', e.altKey && 'alt', e.metaKey && 'meta']
      .filter(Boolean).join('+')]), true);
for (const kind of ['keydown', 'keyup'])
  addEventListener(kind, (e) => seen.push([kind, e.key, e.code, e.keyCode, e.shiftKey, e.ctrlKey,
    e.repeat]), true);
addEventListener('wheel', (e) => seen.push(['wheel', e.clientX, e.clientY, e.deltaX, e.deltaY]));
</script>"""
TEXT = "document.getElementById('a').value"
IDS = count()


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    with Fleet(browsers=1) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def shared(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> BrowserPage:
    file: Path = tmp_path_factory.mktemp("pages") / "input.html"
    file.write_text(PAGE)
    page = fleet.open(PageSpec(width=320, height=240))
    page.navigate(file.as_uri())
    return page


@pytest.fixture
def page(shared: BrowserPage) -> BrowserPage:
    shared.evaluate(f"{TEXT} = ''; document.activeElement.blur(); scrollTo(0, 0)")
    do(shared, Move(319, 239))
    shared.evaluate("seen.length = 0")
    return shared


def do(page: BrowserPage, action: Action) -> list[list[object]]:
    """Perform one action; return the events that the page saw since the last one."""
    page.perform(action, epoch=0, action_id=str(next(IDS)))
    seen = page.evaluate("seen.splice(0)")
    assert isinstance(seen, list)
    return seen


@pytest.mark.parametrize("place", [(0, 0), (319, 0), (0, 239), (160, 120), (7, 201)])
def test_a_click_arrives_where_it_was_sent(page, place):
    x, y = place
    seen = do(page, Click(x, y))
    assert seen == [
        ["mousemove", x, y, 0, 0, 0, ""],
        ["mousedown", x, y, 0, 1, 1, ""],
        ["mouseup", x, y, 0, 0, 1, ""],
        ["click", x, y, 0, 0, 1, ""],
    ]
    again = do(page, Click(x, y))
    assert [event[0] for event in again] == ["mousedown", "mouseup", "click"]


def test_buttons_counts_and_modifiers(page):
    double = do(page, Click(50, 150, count=2))
    assert [event[0] for event in double if event[0] == "dblclick"] == ["dblclick"]
    right = do(page, Click(51, 150, button="right"))
    assert ["contextmenu", 51, 150, 2] in [event[:4] for event in right]
    held = do(page, Click(52, 150, modifiers=("ctrl", "shift")))
    assert ["click", 52, 150, 0, 0, 1, "ctrl+shift"] in held
    assert [event[1] for event in held if event[0] == "keydown"] == ["Control", "Shift"]
    assert [event[1] for event in held if event[0] == "keyup"] == ["Shift", "Control"]
    assert do(page, Click(53, 150))[-1][-1] == ""


def test_a_drag_is_held_on_its_way(page):
    seen = do(page, Drag(((100, 100), (148, 100), (148, 136))))
    assert seen[0][:3] == ["mousemove", 100, 100]
    assert seen[1][:3] == ["mousedown", 100, 100]
    moves = [(event[1], event[2]) for event in seen[2:] if event[0] == "mousemove"]
    assert moves == [
        (112, 100),
        (124, 100),
        (136, 100),
        (148, 100),
        (148, 112),
        (148, 124),
        (148, 136),
    ]
    assert all(event[4] == 1 for event in seen[2:] if event[0] == "mousemove")
    assert ["mouseup", 148, 136] in [event[:3] for event in seen]


def test_a_button_may_stay_down(page):
    do(page, Move(20, 200))
    assert do(page, MouseDown())[0][:5] == ["mousedown", 20, 200, 0, 1]
    assert do(page, Move(30, 210))[0][:5] == ["mousemove", 30, 210, 0, 1]
    assert do(page, MouseUp())[0][:5] == ["mouseup", 30, 210, 0, 0]
    pressed = do(page, LongPress(40, 220, 60))
    assert [event[0] for event in pressed] == ["mousemove", "mousedown", "mouseup", "click"]


def test_the_wheel_turns_and_the_page_scrolls(page):
    assert do(page, Scroll(160, 200, dy=3))[-1] == ["wheel", 160, 200, 0, 300]
    assert page.evaluate("scrollY") == 300


def test_text_arrives_to_the_letter(page):
    text = 'Hello, World! aZ 09 ~`@#$%^&*()_+{}|:"<>?\nsecond\tünïcödé 日本語 👩‍👩‍👧 \\'
    do(page, Click(50, 40))
    page.evaluate(
        "document.getElementById('a').onkeydown = (e) => {"
        " if (e.key === 'Tab') { e.preventDefault(); "
        "document.execCommand('insertText', false, '\\t'); } }"
    )
    do(page, Type(text))
    assert page.evaluate(TEXT) == text


def test_typing_presses_keys_that_pages_can_read(page):
    do(page, Click(50, 40))
    seen = do(page, Type("A1", submit=True))
    assert [event[1:5] for event in seen if event[0] == "keydown"] == [
        ["Shift", "ShiftLeft", 16, True],
        ["A", "KeyA", 65, True],
        ["1", "Digit1", 49, False],
        ["Enter", "Enter", 13, False],
    ]
    assert page.evaluate(TEXT) == "A1\n"


@pytest.mark.parametrize(
    ("name", "key", "code", "number"),
    [
        ("up", "ArrowUp", "ArrowUp", 38), ("space", " ", "Space", 32),
        ("escape", "Escape", "Escape", 27), ("f5", "F5", "F5", 116),
        ("delete", "Delete", "Delete", 46), ("/", "/", "Slash", 191), ("é", "é", "", 0),
    ],
)  # fmt: skip
def test_a_key_has_its_name_code_and_number(page, name, key, code, number):
    down = do(page, KeyDown(name))
    assert down == [["keydown", key, code, number, False, False, False]]
    assert do(page, KeyDown(name))[0][-1] is True, "a key that is down repeats"
    assert do(page, KeyUp(name)) == [["keyup", key, code, number, False, False, False]]


def test_editing_keys_select_copy_paste_and_undo(page):
    do(page, Click(50, 40))
    do(page, Type("one"))
    do(page, Hotkey(("ctrl", "a")))
    do(page, Hotkey(("ctrl", "c")))
    do(page, Hotkey(("end",)))
    seen = do(page, Hotkey(("ctrl", "v")))
    assert page.evaluate(TEXT) == "oneone"
    assert ["keydown", "v", "KeyV", 86, False, True, False] in seen
    do(page, Hotkey(("ctrl", "a")))
    do(page, Hotkey(("ctrl", "x")))
    assert page.evaluate(TEXT) == ""
    do(page, Hotkey(("ctrl", "z")))
    assert page.evaluate(TEXT) == "oneone"


def test_what_can_not_be_done_is_refused_before_anything_is_sent(page):
    for action in (
        Click(320, 0),
        Move(0, 240),
        Drag(((1, 1),)),
        Hotkey(("ctrl", "nokey")),
        Scroll(1, 1, 0, 101),
    ):
        with pytest.raises(ActionFailed):
            page.perform(action, epoch=0, action_id=str(next(IDS)))
    assert page.evaluate("seen.splice(0)") == []
    assert do(page, Click(9, 200, modifiers=()))[-1][-1] == "", "no modifier was left down"


def test_a_clipboard_is_its_pages_own(fleet, page):
    do(page, Click(50, 40))
    do(page, Type("secret"))
    do(page, Hotkey(("ctrl", "a")))
    do(page, Hotkey(("ctrl", "c")))
    other = fleet.open(PageSpec(width=320, height=240))
    other.navigate(str(page.observe().url))
    do(other, Click(50, 40))
    do(other, Hotkey(("ctrl", "v")))
    assert other.evaluate(TEXT) == ""
    other.close()
    page.evaluate("addEventListener('paste', (e) => seen.push(e.clipboardData.getData('text')))")
    assert "secret" in do(page, Hotkey(("ctrl", "v")))
    assert page.evaluate(TEXT) == "secret"


LISTS = """<select id=s onchange="said.push('change ' + value)" oninput="said.push('input')">
<option>red<option>green<option disabled>grey<option>blue</select>
<script>said = [];</script>"""


@pytest.fixture
def lists(fleet: Fleet, tmp_path: Path) -> Iterator[BrowserPage]:
    (tmp_path / "lists.html").write_text(LISTS)
    page = fleet.open(PageSpec(200, 120))
    page.navigate((tmp_path / "lists.html").as_uri())
    yield page
    page.close()


def test_a_drop_down_list_is_part_of_the_picture_and_is_chosen_from(lists):
    page = lists
    closed = page.observe(elements=True)
    box = next(e for e in closed.elements if e.role == "combobox")
    page.perform(Click(*box.centre), epoch=0, action_id="open")
    opened = page.observe(elements=True)
    assert opened.png != closed.png
    rows = {e.name: e for e in opened.elements if e.role == "option"}
    assert list(rows) == ["red", "green", "grey", "blue"]
    page.perform(Click(*rows["grey"].centre), epoch=0, action_id="disabled")
    assert page.evaluate("[s.value, ...said]") == ["red"]
    page.perform(Click(*rows["blue"].centre), epoch=0, action_id="choose")
    assert page.evaluate("[s.value, ...said]") == ["blue", "input", "change blue"]
    assert not [e for e in page.observe(elements=True).elements if e.role == "option"]


def test_a_drop_down_list_is_used_by_keys_and_closed_by_a_click_elsewhere(lists):
    page = lists
    page.evaluate("s.focus()")
    for n, key in enumerate(("enter", "down", "enter")):
        page.perform(Hotkey((key,)), epoch=0, action_id=f"k{n}")
    assert page.evaluate("[s.value, ...said]") == ["green", "input", "change green"]
    page.perform(Hotkey(("space",)), epoch=0, action_id="again")
    assert page.evaluate("document.querySelectorAll('[role=option]').length") == 4
    page.perform(Click(180, 110), epoch=0, action_id="away")
    assert page.evaluate("document.querySelectorAll('[role=option]').length") == 0
    assert page.evaluate("s.value") == "green"


def test_pickers_stay_shut_and_a_date_is_typed(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "date.html").write_text(
        "<body style='margin:0'><input id=d type=date style='width:150px'><input id=c type=color>"
    )
    page = fleet.open(PageSpec(300, 100))
    page.navigate((tmp_path / "date.html").as_uri())
    for n, place in enumerate(((140, 12), (175, 12), (20, 12))):
        page.perform(Click(*place), epoch=0, action_id=f"c{n}")
        page.observe()
    for n, key in enumerate(("0", "3", "0", "4", "2", "0", "2", "6")):
        page.perform(Hotkey((key,)), epoch=0, action_id=f"k{n}")
    assert page.evaluate("d.value") == "2026-03-04"
    page.close()
