"""Elements of a page and the DevTools client, in a real Chromium: headless, and on a real desktop."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import quote

import pytest

from guest.page import NoPage, Page, PageError, ScriptError
from sandbox import browser
from tests.sandbox.desktops import needs_local, new_id
from trajectory import Click, Element, Hotkey, Type

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def port():
    with browser.headless() as port:
        yield port


@pytest.fixture
def page(port):
    page = Page(port, timeout=10)
    yield page
    page.close()


def show(page: Page, body: str) -> tuple[Element, ...]:
    page.navigate("data:text/html;charset=utf-8," + quote(f"<!doctype html><body>{body}"))
    return page.elements()


def short(elements: tuple[Element, ...]) -> list[tuple[str, str, str]]:
    return [(e.role, e.name, e.value) for e in elements]


# -- elements ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<button> Save \n as </button>", ("button", "Save as", "")),
        ("<button aria-label='Close'>×</button>", ("button", "Close", "")),
        ("<button disabled>Go</button>", ("button", "Go", "disabled")),
        ("<input type=submit value=Send>", ("button", "Send", "")),
        ("<a href=#x>more</a>", ("link", "more", "")),
        ("<span style='cursor:pointer;text-decoration:underline'>w</span>", ("link", "w", "")),
        ("<div style='cursor:pointer'>card</div>", ("button", "card", "")),
        ("<div onclick='1'>menu</div>", ("button", "menu", "")),
        ("<input placeholder=City value=Rome>", ("textbox", "City", "Rome")),
        ("<label>User<input></label>", ("textbox", "User", "")),
        ("<label for=i>User</label><input id=i>", ("textbox", "User", "")),
        ("<p><b>Amount:</b> <input></p>", ("textbox", "Amount", "")),
        ("<input type=password value=abc>", ("textbox", "", "•••")),
        ("<textarea>two\nlines</textarea>", ("textarea", "", "two lines")),
        ("<label><input type=checkbox checked>News</label>", ("checkbox", "News", "checked")),
        ("<label><input type=radio>No</label>", ("radio", "No", "")),
        ("<select><option>a<option selected>b</select>", ("combobox", "", "b")),
        ("<div role=tab aria-selected=true>One</div>", ("tab", "One", "selected")),
        ("<h2>Head</h2>", ("heading", "Head", "")),
        ("<p>plain</p>", ("text", "plain", "")),
        ("<img alt=cat width=30 height=30>", ("image", "cat", "")),
        ("<svg><circle cx=20 cy=20 r=15 fill=red /></svg>", ("shape", "red circle", "")),
        ("<div contenteditable>note</div>", ("textarea", "", "note")),
        (f"<button>{'x' * 200}</button>", ("button", "x" * 59 + "…", "")),
    ],
)
def test_what_a_thing_is_called(page, body, expected):
    assert short(show(page, body)) == [expected]


@pytest.mark.parametrize(
    "style",
    ["display:none", "visibility:hidden", "opacity:0", "position:absolute;top:5000px",
     "position:absolute;left:-500px", "width:0;height:0;overflow:hidden;padding:0;border:0"],
)  # fmt: skip
def test_what_cannot_be_seen_is_not_listed(page, style):
    assert short(show(page, f"<button style='{style}'>a</button><i>b</i>")) == [("text", "b", "")]


def test_what_is_hidden_from_readers_is_not_listed(page):
    assert show(page, "<p aria-hidden=true>again <button>a</button></p>") == ()


def test_what_lies_under_something_else_is_not_listed_what_half_does_is(page):
    cover = "<div style='position:fixed;inset:0 0 0 {left};background:#111'></div>"
    button = "<button style='width:200px;position:absolute;left:0'>below</button>"
    assert show(page, button + cover.format(left="0")) == ()
    (half,) = show(page, button + cover.format(left="100px"))
    assert half.name == "below" and half.box[2] == 100


def test_they_come_in_reading_order(page):
    places = {"d": (10, 100), "b": (200, 12), "a": (10, 10), "c": (10, 50)}
    body = "".join(
        f"<button style='position:absolute;left:{x}px;top:{y}px'>{name}</button>"
        for name, (x, y) in places.items()
    )
    assert [e.name for e in show(page, body)] == ["a", "b", "c", "d"]


def test_parts_in_a_shadow_are_listed_and_a_panel_is_not_one_thing(page):
    body = (
        "<div id=h></div><div role=tab tabindex=0>Panel <button>in</button></div><script>"
        "h.attachShadow({mode:'open'}).innerHTML='<button>deep</button>'</script>"
    )
    assert short(show(page, body)) == [
        ("button", "deep", ""), ("text", "Panel", ""), ("button", "in", ""),
    ]  # fmt: skip


def test_the_focused_one_says_so(page):
    show(page, "<input id=a><input id=b>")
    page.evaluate("document.getElementById('b').focus()")
    assert [e.focused for e in page.elements()] == [False, True]


# -- the client --------------------------------------------------------------------------------


def test_values_promises_and_errors_come_back(page):
    show(page, "x")
    assert page.evaluate("({a: [1, null]})") == {"a": [1, None]}
    assert page.evaluate("new Promise(done => setTimeout(() => done(7), 10))") == 7
    assert page.evaluate("undefined") is None
    with pytest.raises(ScriptError, match="ReferenceError: nothing is not defined"):
        page.evaluate("nothing")


def test_it_goes_on_after_a_navigation_and_follows_the_page_in_front(page, port):
    show(page, "<button>old</button>")
    page.navigate("about:blank")
    assert page.elements() == () and page.url == "about:blank"
    show(page, "<button>first</button>")
    other = page.call("Target.createTarget", {"url": "data:text/html,<button>second</button>"})
    deadline = time.monotonic() + 60
    while [e.name for e in page.elements()] != ["second"] and time.monotonic() < deadline:
        pass
    assert [e.name for e in page.elements()] == ["second"]
    page.call("Target.closeTarget", {"targetId": other["targetId"]})
    while [e.name for e in page.elements()] != ["first"] and time.monotonic() < deadline:
        pass
    assert [e.name for e in page.elements()] == ["first"]


def test_no_answer_in_time_is_said_and_the_next_call_is_not_confused(port):
    page = Page(port, timeout=0.5)
    try:
        with pytest.raises(PageError, match="did not answer"):
            page.evaluate("new Promise(() => {})")
        assert page.evaluate("1 + 1") == 2
    finally:
        page.close()


def test_an_address_that_cannot_be_opened_is_named(page):
    with pytest.raises(PageError, match=r"file:///nowhere\.html"):
        page.navigate("file:///nowhere.html")


def test_no_browser_is_no_page():
    page = Page(1, timeout=1)
    assert page.elements() == () and page.url == ""
    with pytest.raises(NoPage, match="no browser answers"):
        page.evaluate("1")


def test_elements_js_is_one_expression():
    from guest import page as module

    assert Path(module.__file__).with_name("elements.js").is_file()
    assert module.ELEMENTS_JS.rstrip().endswith(")")


# -- on a real desktop -------------------------------------------------------------------------

BODY = """<!doctype html><title>t</title><body style="margin:0">
<button style="position:absolute;left:37px;top:53px" onclick="hit='one'">one</button>
<button style="position:absolute;left:411px;top:207px;width:9px;height:9px;padding:0"
  onclick="hit='two'" aria-label=two></button>
<input style="position:absolute;left:300px;top:300px" aria-label=field><script>hit=''</script>"""


@needs_local
def test_boxes_are_places_on_the_screen(booted, epoch, do):
    booted.write_file("page.html", BODY.encode(), epoch=epoch)
    home = booted.shell("pwd", epoch=epoch, action_id=new_id()).output.strip()
    booted.launch(["browser", f"file://{home}/page.html"], epoch=epoch, action_id=new_id())
    elements = wait_for_elements(booted, {"one", "two", "field"})
    for name in ("one", "two"):
        do(Click(*elements[name].centre))
        assert wait_for(booted, "hit", name)
    do(Click(*elements["field"].centre))
    do(Type("héllo"))
    assert wait_for(booted, "document.querySelector('input').value", "héllo")
    seen = wait_for_elements(booted, {"field"})["field"]
    assert (seen.value, seen.focused) == ("héllo", True)

    booted.evaluate("hit = ''")
    do(Hotkey(("ctrl", "+")))
    assert wait_for(booted, "devicePixelRatio > 1", True)
    bigger = wait_for_elements(booted, {"two"})["two"]
    assert bigger.box[2] >= elements["two"].box[2]
    do(Click(*bigger.centre))
    assert wait_for(booted, "hit", "two")
    do(Hotkey(("ctrl", "0")))


def wait_for(desktop, expression: str, value: object) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if desktop.evaluate(expression) == value:
            return True
        time.sleep(0.05)
    return False


def wait_for_elements(desktop, names: set[str]) -> dict[str, Element]:
    """Return the elements once all of `names` are there and nothing has moved between two looks.

    A window that has just been mapped is still being placed.
    """
    deadline = time.monotonic() + 60
    before: dict[str, Element] = {}
    while time.monotonic() < deadline:
        desktop.settle(quiet_ms=200, max_ms=2000)
        found = {e.name: e for e in desktop.observe(elements=True).elements or ()}
        if names <= found.keys() and found == before:
            return found
        before = found
    raise AssertionError(f"{names} never came to rest; there were {sorted(before)}")
