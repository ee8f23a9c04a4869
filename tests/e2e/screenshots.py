"""`python -m tests.e2e.screenshots`: take the README's pictures anew from a real session.

Starts a Tandem of its own, works on a demo task beside the model in the box, reviews it, trains on it,
and turns the flywheel once. About a quarter of an hour on two cores. `python -m tests.e2e.screenshots
kinds` takes only those of the workbench with each kind of computer, in some two minutes.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.e2e import kinds
from tests.e2e.conftest import FLAGS
from tests.e2e.stack import ROOT, Stack
from tests.e2e.test_terminal import use
from tests.e2e.workbench import Workbench, sign_in
from tests.sandbox.desktops import needs_container, needs_qemu
from tests.sandbox.phones import needs_adb
from tests.waiting import until

OUT = ROOT / "docs" / "images"
TASK = "demo/login-user-70020"


def seat(browser: Browser, stack: Stack, name: str, scheme: str = "light") -> Page:
    context = browser.new_context(viewport={"width": 1360, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    sign_in(page, stack, name)
    return page


def take(stack: Stack, browser: Browser) -> None:
    """Go through the thread and keep a picture of each of its pages."""
    import psycopg

    with psycopg.connect(stack.services()["DATABASE_URL"]) as connection:
        connection.execute(
            "update annotation_task set priority = 100 where external_id = %s", (TASK,)
        )
    page = seat(browser, stack, "annotator")
    page.screenshot(path=OUT / "queue.png")
    work = Workbench(page, stack)
    work.start()
    for step in range(8):
        proposals = work.proposals()
        until(lambda: work.colours() > 10, "picture")
        if step == 2:
            page.wait_for_timeout(500)
            page.screenshot(path=OUT / "workbench.png")
        if proposals[0]["action"]["type"] == "finish":
            break
        work.accept()
    session = work.id
    page.keyboard.press("f")
    page.fill("#finish-thought", "The page says that the episode is over.")
    page.keyboard.press("Control+Enter")
    verdict = "select status, reward from annotation_session where id = %s"
    until(lambda: stack.rows(verdict, session)[0][0] == "submitted", "submitted session")
    print("verifier:", stack.rows(verdict, session))

    reviewer = seat(browser, stack, "reviewer", "dark")
    reviewer.goto(f"{stack.url}/reviews/{session}/")
    reviewer.keyboard.press("ArrowRight")
    reviewer.wait_for_timeout(800)
    reviewer.screenshot(path=OUT / "review.png")
    reviewer.keyboard.press("Shift+A")
    until(lambda: stack.rows(verdict, session)[0][0] == "accepted", "accepted session")

    admin = seat(browser, stack, "admin")
    admin.goto(f"{stack.url}/training/datasets/new/")
    admin.fill("[name=name]", "first-session")
    admin.locator("button.primary").first.click()
    admin.goto(f"{stack.url}/training/runs/new/?kind=sft")
    admin.fill("[name=name]", "after-the-first-session")
    admin.fill("[name=steps]", "24")
    admin.fill("[name=batch_size]", "4")
    admin.fill("[name=save_every]", "12")
    admin.locator("button.primary", has_text="Launch").click()
    expect(admin.locator("#state")).to_have_text("succeeded", timeout=600_000)
    admin.wait_for_timeout(2500)
    admin.screenshot(path=OUT / "run.png")

    admin.goto(f"{stack.url}/training/evaluations/new/")
    admin.select_option("[name=suite]", "miniwob-20")
    admin.fill("[name=seeds]", "10000:10003")
    admin.fill("[name=max_steps]", "12")
    admin.locator("button.primary", has_text="Begin").click()
    page_of = admin.url
    done = "select count(*) from training_episode where state = 'done'"
    until(lambda: stack.rows(done)[0][0] >= 20, "played episodes", deadline_s=300)
    admin.goto(f"{stack.url}/training/rollouts/1/")
    admin.wait_for_timeout(1500)
    admin.screenshot(path=OUT / "rollout.png")
    until(lambda: stack.rows(done)[0][0] == 60, "a whole evaluation", deadline_s=600)
    admin.goto(page_of)
    admin.wait_for_timeout(2500)
    admin.screenshot(path=OUT / "evaluation.png")


def every_kind(stack: Stack, browser: Browser) -> None:
    """Work on a computer of each kind that can be had here; keep a picture of the workbench."""
    for name, scheme in KINDS.items():
        with kinds.computers(stack, name):
            kinds.offer(stack, kinds.KINDS[name])
            one_kind(stack, seat(browser, stack, "annotator", scheme), name)
    kinds.withdraw(stack)


def one_kind(stack: Stack, page: Page, name: str) -> None:
    """Start the session that waits, and keep its pictures."""
    work = Workbench(page, stack)
    work.start()
    work.proposals()
    until(lambda: work.colours() > 3, "picture")
    page.wait_for_timeout(800)
    page.screenshot(path=OUT / f"workbench-{name}.png")
    if name == kinds.OWN:
        use(work, lambda what: page.screenshot(path=OUT / f"{what}.png"))
        work.phase("ready")
    work.skip()
    page.context.close()


KINDS = {"local": "light", "container": "dark", "android": "light", "qemu": "light"}
"""Each kind of computer with the scheme of its picture."""

ITERATION = {
    "tasks": "miniwob/click-option\nminiwob/choose-list\nminiwob/enter-text\nminiwob/click-tab",
    "seeds": "3",
    "samples": "4",
    "max_steps": "6",
    "ct_every": "0",
    "rl_every": "1",
    "suite": "smoke",
    "evaluation_seeds": "10000:10004",
    "changes": "sft.steps: 6\nsft.dtype: bfloat16\nvalue.steps: 3\nvalue.dtype: bfloat16\n"
    "ppo.updates: 4\nppo.dtype: bfloat16",
}
"""An iteration with RL that two cores turn in some minutes."""
PRESETS = {"sft_preset": "quick", "value_preset": "quick", "ppo_preset": "quick"}


def turn(stack: Stack, browser: Browser) -> None:
    """Turn the flywheel once with RL; keep a picture of its pages."""
    admin = seat(browser, stack, "admin")
    admin.goto(f"{stack.url}/training/runs/new/")
    admin.wait_for_timeout(500)
    admin.screenshot(path=OUT / "launch.png")
    admin.goto(f"{stack.url}/training/iterations/new/")
    for name, value in ITERATION.items():
        field = admin.locator(f"[name={name}]")
        if field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
    for name, value in PRESETS.items():
        admin.select_option(f"[name={name}]", value)
    admin.locator("button.primary", has_text="Start").click()
    page_of = admin.url
    run = "select id, state from training_run where kind = 'ppo'"
    until(lambda: stack.rows(run), "an RL run", deadline_s=1200)
    number = stack.rows(run)[0][0]
    until(lambda: stack.rows(run)[0][1] == "succeeded", "the end of RL", deadline_s=1200)
    admin.goto(page_of)
    admin.wait_for_timeout(1500)
    admin.screenshot(path=OUT / "iteration.png")
    admin.goto(f"{stack.url}/training/runs/{number}/")
    admin.wait_for_timeout(2500)
    admin.screenshot(path=OUT / "ppo.png")
    newest = "select max(id) from training_checkpoint where role = 'policy'"
    admin.goto(f"{stack.url}/training/lineage/checkpoint/{stack.rows(newest)[0][0]}/")
    admin.wait_for_timeout(1000)
    admin.screenshot(path=OUT / "lineage.png")


def missing() -> list[str]:
    """Return the kinds that this machine has no computers of."""
    needs = {"container": needs_container, "android": needs_adb, "qemu": needs_qemu}
    return [name for name, need in needs.items() if need.args[0]]


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="tandem-shots-"))
    folder.chmod(0o755)
    OUT.mkdir(parents=True, exist_ok=True)
    stack = Stack(folder / "state")
    try:
        stack.start()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=FLAGS
            )
            if "kinds" not in sys.argv:
                take(stack, browser)
                turn(stack, browser)
            for name in missing():
                print(f"no picture of {name}: it can't be had here")
                del KINDS[name]
            every_kind(stack, browser)
            browser.close()
    finally:
        stack.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
