"""The fleet's pages by keys: watch a computer, end it, drain its host, in light and in dark."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.stack import Stack
from tests.e2e.workbench import TIMEOUT, sign_in
from tests.waiting import until

pytestmark = pytest.mark.timeout(300)

READY = "select id from sandbox_sandbox where state = 'ready' order by id"
STATE = "select state from sandbox_sandbox where id = %s"


def press(page: Page, name: str) -> None:
    """Go to the first button of that name as keys do, and press it."""
    page.get_by_role("button", name=name, exact=True).first.focus()
    page.keyboard.press("Enter")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_watch_end_and_drain_by_keys(stack: Stack, chromium: Browser, scheme: str) -> None:
    context = chromium.new_context(
        viewport={"width": 1360, "height": 800},
        color_scheme=scheme,  # type: ignore[arg-type]
    )
    page = context.new_page()
    page.on("dialog", lambda dialog: dialog.accept())
    sign_in(page, stack, "admin")
    ((computer,), *_) = until(lambda: stack.rows(READY), "ready computer", deadline_s=90)

    page.goto(f"{stack.url}/fleet/computers/")
    page.locator(f"a.thumb[href$='/computers/{computer}/']").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/fleet/computers/{computer}/")
    picture = page.locator(".watch img")
    until(lambda: picture.evaluate("image => image.naturalWidth > 100"), "picture of it")
    press(page, "End")
    until(lambda: stack.rows(STATE, computer) == [("gone",)], "its end")

    page.goto(f"{stack.url}/fleet/")
    row = page.locator("tr", has_text="this machine only").filter(has_text="local")
    row.get_by_role("button", name="Drain").focus()
    page.keyboard.press("Enter")
    expect(row).to_contain_text("draining", timeout=TIMEOUT)
    row.get_by_role("button").first.focus()
    page.keyboard.press("Enter")
    expect(row).to_contain_text("up", timeout=TIMEOUT)
    context.close()
