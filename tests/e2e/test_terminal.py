"""The terminal and the services of a computer, by keys alone, in real Chromium."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.stack import Stack
from tests.e2e.workbench import TIMEOUT, Workbench, sign_in
from tests.waiting import until

pytestmark = pytest.mark.timeout(300)

SERVE = (
    "mkdir site; cd site; echo '<h1>Hello from the computer</h1>' > index.html;"
    " python3 -m http.server 8123 &"
)
SHELLS = (
    "select action->>'command', actor from annotation_step"
    " where session_id = %s and action->>'type' = 'shell' order by index"
)


def use(work: Workbench, picture: Callable[[str], None]) -> None:
    """Open the terminal, work in it, open what it serves, hand back; `picture` may keep what shows."""
    page, rows = work.page, work.page.locator(".xterm-rows")
    page.keyboard.press("c")
    expect(page.locator("#shell-note")).to_contain_text("take over first")
    work.take_over()
    expect(rows).to_contain_text("$", timeout=TIMEOUT)
    expect(page.locator("#focus-mode")).to_contain_text("terminal")
    page.keyboard.type("echo hello-$((40+2))\n")
    expect(rows).to_contain_text("hello-42", timeout=TIMEOUT)

    before = rows.locator("> div").count()
    page.focus("#shell-edge")
    for _ in range(4):
        page.keyboard.press("ArrowUp")
    until(lambda: rows.locator("> div").count() > before, "higher terminal")
    page.focus(".xterm-helper-textarea")
    page.keyboard.type("stty size\n")
    expect(rows).to_contain_text(f"{rows.locator('> div').count()} ", timeout=TIMEOUT)
    page.keyboard.type("read -s -p Secret: it\n")
    expect(rows).to_contain_text("Secret:", timeout=TIMEOUT)
    page.keyboard.type("geheim\n")
    page.keyboard.type(f"{SERVE}\n")
    expect(rows).to_contain_text("Serving HTTP", timeout=TIMEOUT)
    picture("terminal")
    page.keyboard.press("Control+Alt+c")
    expect(page.locator("#shell")).to_be_hidden()

    page.keyboard.press("v")
    expect(page.locator("#services button").first).to_be_focused(timeout=TIMEOUT)
    expect(page.locator("#services button")).to_have_text("Port 8123")
    picture("services")
    with page.context.expect_page() as opened:
        page.keyboard.press("Enter")
    expect(opened.value.locator("h1")).to_have_text("Hello from the computer", timeout=TIMEOUT)
    assert "//p8123-" in opened.value.url
    opened.value.close()
    work.hand_back("The task needs it.")


def test_a_terminal_and_a_service_by_keys(stack: Stack, page: Page) -> None:
    sign_in(page, stack, "annotator")
    work = Workbench(page, stack)
    work.start()
    work.proposals()
    use(work, lambda _: None)
    kept = stack.rows(SHELLS, work.id)
    assert [command for command, _ in kept][:2] == ["echo hello-$((40+2))", "stty size"]
    assert kept[-1][0] == SERVE and {actor for _, actor in kept} == {"human"}
    assert not any("geheim" in command for command, _ in kept)
    work.phase("ready")
    work.skip()
