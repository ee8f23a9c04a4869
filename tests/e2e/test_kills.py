"""kill -9 of any part in mid-session loses no decision, and the session can go on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.stack import Stack
from tests.e2e.workbench import TIMEOUT, Workbench, sign_in
from tests.waiting import until

pytestmark = pytest.mark.timeout(300)

STEPS = "select index, thought, state, action_id from annotation_step where session_id = %s order by index"


@pytest.fixture
def work(stack: Stack, page: Page) -> Iterator[Workbench]:
    """A session with one decision in it; given back by a skip, so that the next test may start."""
    sign_in(page, stack, "annotator")
    work = Workbench(page, stack)
    work.start()
    work.proposals()
    work.does(lambda: work.override("wait(50)", "Before the crash."))
    yield work
    page.reload()
    work.connected()  # the page's scripts run
    page.keyboard.press("s")
    page.fill("#skip-reason", "end of the test")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/queue/", timeout=TIMEOUT)


def ask_again(work: Workbench) -> None:
    """Ask the model anew and wait until the page shows that round."""
    before = work.state.get_attribute("data-point") or ""
    work.page.keyboard.press("r")
    work.page.fill("#hint", "again")
    work.page.keyboard.press("Enter")
    expect(work.state).not_to_have_attribute("data-point", before, timeout=TIMEOUT)


def goes_on(work: Workbench) -> None:
    """Check that what was decided is there, once, and that one more decision can be made."""
    kept = work.stack.rows(STEPS, work.id)
    assert [row[1] for row in kept][:1] == ["Before the crash."]
    work.proposals()
    work.connected()
    work.does(lambda: work.override("wait(60)", "After the crash."))
    after = work.stack.rows(STEPS, work.id)
    assert after[: len(kept)] == kept
    assert [row[0] for row in after] == list(range(len(after)))
    assert {row[2] for row in after} == {"executed"}
    assert after[-1][1] == "After the crash."


def test_the_web_process(stack: Stack, work: Workbench) -> None:
    work.proposals()
    work.page.fill("#hint", "typed before the crash")
    expect(work.page.locator("#saved")).to_contain_text("saved", timeout=TIMEOUT)
    dead = stack.kill("uvicorn", "config.asgi")
    until(lambda: set(stack.pids("uvicorn", "config.asgi")) - set(dead), "new web process")
    # The page finds back by itself: the desktop's stream and the hints reconnect.
    work.connected()
    goes_on(work)


def test_the_agent_worker(stack: Stack, work: Workbench) -> None:
    work.proposals()
    ask_again(work)
    stack.kill("celery", "agent@")
    goes_on(work)


def test_the_policy_server(stack: Stack, work: Workbench) -> None:
    work.proposals()
    stack.kill("agent.serving")
    ask_again(work)
    goes_on(work)


def test_the_desktop(stack: Stack, work: Workbench) -> None:
    work.proposals()
    ((pid, boot),) = stack.rows(
        "select (s.handle->>'pid')::int, s.handle->>'boot_id' from annotation_session a"
        " join sandbox_lease l on l.id = a.lease_id join sandbox_sandbox s on s.id = l.sandbox_id"
        " where a.id = %s",
        work.id,
    )
    os.kill(pid, signal.SIGKILL)
    until(
        lambda: stack.rows(
            "select 1 from annotation_session a join sandbox_lease l on l.id = a.lease_id"
            " join sandbox_sandbox s on s.id = l.sandbox_id"
            " where a.id = %s and s.handle->>'boot_id' <> %s and a.status = 'active'",
            work.id,
            boot,
        ),
        "other computer",
        deadline_s=90,
    )
    goes_on(work)
