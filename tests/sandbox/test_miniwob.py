"""MiniWoB pages: starting, judging, and what the oracle says about screens made by hand."""

from __future__ import annotations

import time

import pytest

from guest.page import Page
from sandbox import browser, miniwob
from trajectory import Click, Element, Finish, Hotkey, Type

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def page():
    with browser.headless() as port:
        page = Page(port, timeout=10)
        yield page
        page.close()


def start(page: Page, name: str, seed: int) -> str:
    page.navigate(miniwob.url(name, folder=miniwob.assets()))
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if isinstance(said := page.evaluate(miniwob.start_script(seed)), str):
            return said
    raise AssertionError(f"{name} did not start")


def click(page: Page, element: Element) -> None:
    view = page.view()
    x, y = element.centre
    for kind in ("mousePressed", "mouseReleased"):
        page.call(
            "Input.dispatchMouseEvent",
            {"type": kind, "x": x - view.origin[0], "y": y - view.origin[1], "button": "left",
             "clickCount": 1},
        )  # fmt: skip


def judge(page: Page) -> miniwob.Judged:
    return miniwob.verdict(page.evaluate(miniwob.state_script()))


def test_every_page_starts_and_has_an_oracle(page):
    assert set(miniwob.PAGES) == set(miniwob.SCRIPTS)
    for name in miniwob.PAGES:
        said = start(page, name, 5)
        assert said
        thought, action = miniwob.oracle(name, said, page.elements(), [])
        assert thought and isinstance(action, Click)


def test_the_right_click_is_worth_one_and_nothing_starts_again_by_itself(page):
    start(page, "click-test-2", 1)
    assert judge(page) == (0.0, "the episode has not ended", False)
    one = next(e for e in page.elements() if e.name == "ONE")
    click(page, one)
    assert judge(page) == (1.0, "raw reward 1", True)
    over = page.elements()
    assert [(e.role, e.name) for e in over] == [("text", miniwob.OVER)]
    click(page, over[0])
    assert judge(page).done and [e.name for e in page.elements()] == [miniwob.OVER]


def test_the_wrong_click_is_worth_nothing(page):
    start(page, "click-test-2", 1)
    click(page, next(e for e in page.elements() if e.name == "TWO"))
    judged = judge(page)
    assert (judged.reward, judged.done) == (0.0, True)


def test_reward_and_instruction_are_not_among_the_elements(page):
    said = start(page, "click-link", 4)
    names = " ".join(e.name for e in page.elements())
    assert said not in names and "reward" not in names and "Time left" not in names


def test_a_page_that_is_no_episode_gives_no_reward(page):
    page.navigate("about:blank")
    assert page.evaluate(miniwob.start_script(1)) is None
    assert judge(page).reward is None


def test_partial_success_is_no_success():
    state = {"done": True, "raw_reward": 0.6, "reason": None, "utterance": "x"}
    assert miniwob.verdict(state) == (0.0, "raw reward 0.6", True)


@pytest.mark.parametrize("name", ["../etc/passwd", "a b", "", "x.html"])
def test_no_other_file_can_be_named(name):
    with pytest.raises(ValueError, match="no MiniWoB page"):
        miniwob.url(name)


def field(name: str, value: str = "", focused: bool = False, y: int = 0) -> Element:
    return Element("textbox", name, (0, y, 100, 20), value, focused)


SUBMIT = Element("button", "Submit", (0, 50, 60, 20))
ENTER = 'Enter "bob" into the text field and press Submit.'


def test_a_field_is_focused_before_it_is_typed_into_and_cleared_if_wrong():
    def next_action(element: Element):
        return miniwob.oracle("enter-text", ENTER, [element, SUBMIT], [])[1]

    assert next_action(field("")) == Click(50, 10)
    assert next_action(field("", focused=True)) == Type("bob")
    assert next_action(field("", "bobo", focused=True)) == Hotkey(("ctrl", "a"))
    assert next_action(field("", "bob", focused=True)) == Click(30, 60)


def test_the_tabs_are_opened_one_after_the_other():
    def tab(n: int, value: str = "") -> Element:
        return Element("tab", f"Tab #{n}", (n * 50, 0, 40, 20), value)

    said = 'Switch between the tabs to find and click on the link "ut".'
    screen = [tab(1), tab(2, "selected"), tab(3)]
    past = [("", Click(120, 10), tab(2))]
    assert miniwob.oracle("click-tab-2", said, screen, past)[1] == Click(170, 10)
    with pytest.raises(miniwob.NoWay, match="no tab has a link"):
        miniwob.oracle("click-tab-2", said, [tab(1, "selected")], [])


def test_it_finishes_when_the_page_says_that_it_is_over():
    over = Element("text", miniwob.OVER, (0, 0, 160, 210))
    assert isinstance(miniwob.oracle("click-test", "Click the button.", [over], [])[1], Finish)


def test_the_thought_says_why():
    def thought(element: Element) -> str:
        return miniwob.oracle("enter-text", ENTER, [element, SUBMIT], [])[0]

    assert thought(field("Name")) == '"Name" is not focused, I click it.'
    assert thought(field("", focused=True)) == 'The field is focused, I type "bob".'
    assert thought(field("", "bob")) == 'All is filled in, I click "Submit".'
