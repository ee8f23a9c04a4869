"""The whole thread: annotate beside the model, review, freeze, train, promote, and see the new version."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Browser, Page, expect

from sandbox import browser
from tests.e2e.stack import Stack
from tests.e2e.workbench import TIMEOUT, Workbench, sign_in
from tests.waiting import until
from training.box.episodes import Game

pytestmark = [pytest.mark.timeout(600)]

SEED = 424_242


def utterance(page: str, seed: int) -> str:
    """Return what a MiniWoB page asks for with this seed."""
    with browser.headless() as port:
        return Game(port, page).start(seed)


def import_task(
    page: Page, stack: Stack, instruction: str, external_id: str, priority: int
) -> None:
    """Import one task as the admin, through the page."""
    task = {
        "external_id": external_id,
        "instruction": instruction,
        "setup": [{"kind": "miniwob", "page": "enter-text", "seed": SEED}],
        "verifier": {"kind": "miniwob"},
        "priority": priority,
    }
    page.goto(f"{stack.url}/tasks/import/")
    page.set_input_files(
        "input[type=file]",
        {
            "name": "tasks.json",
            "mimeType": "application/json",
            "buffer": json.dumps([task]).encode(),
        },
    )
    page.locator("button.primary[type=submit], button.primary:not([type])").last.click()
    page.goto(f"{stack.url}/tasks/")
    expect(page.locator("body")).to_contain_text(external_id)


def test_the_whole_thread(stack: Stack, chromium: Browser, page: Page) -> None:
    others = chromium.new_context(viewport={"width": 1440, "height": 860})
    admin = others.new_page()
    sign_in(admin, stack, "admin")
    instruction = utterance("enter-text", SEED)
    word = re.search(r'"(.+?)"', instruction)[1]
    import_task(admin, stack, instruction, "e2e-enter-text", 100)

    # -- annotate ------------------------------------------------------------------------------
    sign_in(page, stack, "annotator")
    work = Workbench(page, stack)
    work.start()
    first = work.proposals()
    assert first[0]["action"], "the model's first candidate can be read"
    assert len({str(proposal["action"]) for proposal in first}) > 1, "there is something to choose"
    before = page.locator(".provenance .mono").inner_text()
    until(lambda: work.colours() > 10, "picture of a page on the live desktop")
    picture = work.picture()

    # Accept: the model goes for the text field.
    work.accept()
    until(lambda: work.picture() != picture, "change of the live desktop")

    # Edit a proposal's thought and action.
    work.proposals()
    box = work.place("textbox")
    page.keyboard.press("a")
    page.fill("#command", f"click({box[0]}, {box[1]})")
    page.fill("#thought", "I put the caret into the field first.")
    work.does(lambda: page.keyboard.press("Control+Enter"))

    # Override: a thought and an action of one's own.
    work.proposals()
    work.does(lambda: work.override(f'type("{word}")', "The yellow line asks for this word."))

    # Take over: press the button by hand, through the relay.
    work.proposals()
    button = work.place("button", "submit")
    page.keyboard.press("t")
    work.phase("human")
    expect(page.locator("#controller")).to_contain_text("you drive")
    work.click_desktop(button)
    work.arrived()
    steps = work.steps
    page.keyboard.press("Control+Alt+t")
    expect(work.state).to_have_attribute("data-steps", str(steps + 1), timeout=TIMEOUT)
    page.locator("#thoughts textarea").first.fill("All is typed, so I submit it.")
    page.keyboard.press("Enter")
    expect(page.locator("#thoughts")).to_be_hidden(timeout=TIMEOUT)
    kinds = stack.rows(
        "select d.kind, s.action from annotation_decision d"
        " join annotation_step s on s.id = d.step_id where s.session_id = %s order by s.index",
        work.id,
    )
    assert kinds[0][0] == "accepted"
    assert kinds[1][0] in ("edited", "edited_thought")  # the place may be the one proposed
    assert kinds[2][0] == "overridden"
    assert kinds[3][0] == "taken_over"
    hand = kinds[3][1]
    assert (
        hand["type"] == "click"
        and abs(hand["x"] - button[0]) <= 1
        and abs(hand["y"] - button[1]) <= 1
    )

    # Finish.
    session = work.id
    work.finish("The page says that the episode is over.")

    # -- review --------------------------------------------------------------------------------
    seat = chromium.new_context(viewport={"width": 1440, "height": 860})
    reviewer = seat.new_page()
    sign_in(reviewer, stack, "reviewer")
    reviewer.goto(f"{stack.url}/reviews/{session}/")
    expect(reviewer.locator(".replay-item")).to_have_count(5, timeout=TIMEOUT)
    reviewer.keyboard.press("Shift+A")
    verdict = "select status, reward from annotation_session where id = %s"
    until(lambda: stack.rows(verdict, session) == [("accepted", 1.0)], "accepted session")

    # -- freeze, train, promote ----------------------------------------------------------------
    admin.goto(f"{stack.url}/training/datasets/new/")
    admin.fill("[name=name]", "e2e")
    admin.locator("button.primary").first.click()
    expect(admin.locator("body")).to_contain_text("e2e")
    admin.goto(f"{stack.url}/training/runs/new/?kind=sft")
    admin.locator("[data-preset=quick]").click()
    admin.fill("[name=name]", "e2e-run")
    admin.fill("[name=steps]", "2")
    admin.locator("button.primary", has_text="Launch").click()
    expect(admin.locator("#state")).to_have_text("succeeded", timeout=240_000)
    expect(admin.locator("[data-plot=loss] canvas")).to_be_visible()
    admin.locator("a.primary", has_text="Promote").first.click()
    admin.locator("button.primary", has_text="Promote").click()
    ((promoted,),) = stack.rows(
        "select c.version from training_promotion p"
        " join training_checkpoint c on c.id = p.checkpoint_id order by p.id desc limit 1"
    )
    assert promoted != before
    # Until the server has opened the new weights, proposals come from the old ones.
    until(lambda: stack.serves() == promoted, f"policy server with {promoted}", deadline_s=120)

    # -- and the next session's proposals come from it -------------------------------------------
    work.start()
    work.proposals()
    expect(page.locator(".provenance .mono")).to_have_text(promoted)
    work.skip()
    others.close()
    seat.close()
