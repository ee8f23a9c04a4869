"""The workbench as a person drives it: by keys, in real Chromium."""

from __future__ import annotations

import hashlib
from typing import Any

from playwright.sync_api import Page, expect

from tests.e2e.stack import Stack
from tests.waiting import until

TIMEOUT = 90_000  # ms; a desktop, a model and two cores


def sign_in(page: Page, stack: Stack, name: str) -> None:
    page.goto(f"{stack.url}/accounts/login/")
    page.fill("[name=username]", name)
    page.fill("[name=password]", stack.password(name))
    page.keyboard.press("Enter")
    expect(page.locator("header")).to_contain_text(name)


class Workbench:
    """One open session."""

    def __init__(self, page: Page, stack: Stack) -> None:
        self.page, self.stack = page, stack
        self.state = page.locator("#state")

    def start(self) -> None:
        """Press Start in the queue and wait for the live desktop."""
        self.page.goto(f"{self.stack.url}/queue/")
        self.page.keyboard.press("s")
        self.page.wait_for_url("**/sessions/*/", timeout=TIMEOUT)
        assert self.steps == 0, f"session {self.id} was left open by another test"
        self.connected()

    @property
    def id(self) -> int:
        return int(self.page.locator("#workbench").get_attribute("data-session") or 0)

    def connected(self) -> None:
        expect(self.page.locator("#connection")).to_have_attribute(
            "data-state", "connected", timeout=TIMEOUT
        )

    def proposals(self) -> list[dict[str, Any]]:
        """Wait for the model's candidates and return them."""
        self.phase("ready")
        return self.page.evaluate("JSON.parse(document.getElementById('proposals').textContent)")

    def phase(self, name: str) -> None:
        expect(self.state).to_have_attribute("data-phase", name, timeout=TIMEOUT)

    @property
    def steps(self) -> int:
        return int(self.state.get_attribute("data-steps") or 0)

    def accept(self) -> None:
        """Accept the first proposal, as `does`.

        A window that is still being drawn is another screen than the one that was proposed for: then
        nothing is done and the model is asked again, and so is this.
        """
        before = self.steps

        def another_round(point: str | None) -> bool:
            return self.state.get_attribute("data-point") not in (point, "")

        while self.steps == before:
            self.phase("ready")
            point = self.state.get_attribute("data-point")
            self.page.keyboard.press("Enter")
            until(lambda p=point: self.steps > before or another_round(p), "an answer")  # type: ignore[misc]
        self._executed(before)

    def does(self, verb: Any) -> None:
        """Run `verb` and wait until one more step stands in the trajectory and is executed."""
        before = self.steps
        verb()
        expect(self.state).to_have_attribute("data-steps", str(before + 1), timeout=TIMEOUT)
        self._executed(before)

    def _executed(self, before: int) -> None:
        executed = (
            "select count(*) from annotation_step where session_id = %s and state = 'executed'"
        )
        until(lambda: self.stack.rows(executed, self.id)[0][0] > before, f"step {before} executed")

    def override(self, command: str, thought: str) -> None:
        """Write an own thought and action."""
        self.page.keyboard.press("o")
        self.page.fill("#command", command)
        self.page.fill("#thought", thought)
        self.page.focus("#command")
        self.page.keyboard.press("Escape")  # the list of completions
        self.page.focus("#command")
        self.page.keyboard.press("Enter")

    def take_over(self) -> None:
        """Take mouse and keyboard, and wait for the stream that carries them."""
        self.page.keyboard.press("t")
        self.phase("human")
        expect(self.page.locator("#controller")).to_contain_text("you drive")
        # Until it is there the one before, which only looks, stays.
        expect(self.page.locator("[data-held]")).to_have_attribute(
            "data-held", "control", timeout=TIMEOUT
        )
        expect(self.page.locator("#desktop canvas")).to_have_count(1, timeout=TIMEOUT)
        self.connected()

    def hand_back(self, thought: str) -> None:
        """Give them back, and say `thought` of every step that the hand did."""
        self.page.keyboard.press("Control+Alt+t")
        expect(self.page.locator("#thoughts")).to_be_visible(timeout=TIMEOUT)
        boxes = self.page.locator("#thoughts textarea")
        while boxes.count():
            left = boxes.count()
            boxes.first.fill(thought)
            boxes.first.press("Enter")
            expect(boxes).to_have_count(left - 1, timeout=TIMEOUT)

    def arrived(self, *, keys: int = 0) -> None:
        """Wait until a click of the hand, and the release of so many keys, stand in the rows.

        Input goes by a stream of its own: a verb that follows at once may overtake it.
        """
        events = (
            "select count(*) filter (where not down), coalesce(bool_or(buttons > 0), false),"
            " (array_agg(buttons order by seq desc) filter (where buttons is not null))[1]"
            " from sandbox_inputevent e join annotation_session s on s.lease_id = e.lease_id"
            " where s.id = %s"
        )

        def all_there() -> bool:
            ((released, clicked, buttons),) = self.stack.rows(events, self.id)
            return released >= keys and clicked and buttons == 0

        until(all_there, "input of the hand")

    def finish(self, thought: str) -> None:
        """Say that the task is done, and wait until the session is over; the page stays."""
        session = self.id
        self.phase("ready")
        self.page.keyboard.press("f")
        self.page.fill("#finish-thought", thought)
        self.page.keyboard.press("Control+Enter")
        over = "select 1 from annotation_session where id = %s and status = 'submitted'"
        until(lambda: self.stack.rows(over, session), f"end of session {session}")

    def skip(self) -> None:
        """Pass the task by, so that the next session may begin."""
        self.page.keyboard.press("s")
        self.page.fill("#skip-reason", "end of the test")
        self.page.keyboard.press("Control+Enter")
        self.page.wait_for_url("**/queue/", timeout=TIMEOUT)

    def frame(self) -> tuple[int, int]:
        """Return the size of the computer's screen as the page knows it."""
        return int(self._said("width")), int(self._said("height"))

    def canvas(self) -> tuple[int, int]:
        """Return the size of the picture that noVNC shows."""
        return tuple(
            self.page.evaluate(
                "(({width, height}) => [width, height])(document.querySelector('#desktop canvas'))"
            )
        )

    def _said(self, name: str) -> str:
        return self.state.get_attribute(f"data-{name}") or ""

    def picture(self) -> str:
        """Return a hash of the pixels that noVNC shows."""
        data = self.page.evaluate(
            "document.querySelector('#desktop canvas').toDataURL('image/png')"
        )
        return hashlib.sha256(data.encode()).hexdigest()

    def colours(self) -> int:
        """Return how many colours the live desktop shows on a coarse grid."""
        return self.page.evaluate(
            """() => {
              const canvas = document.querySelector('#desktop canvas');
              const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
              const seen = new Set();
              for (let i = 0; i < data.length; i += 4 * 97) seen.add(data[i] << 16 | data[i+1] << 8 | data[i+2]);
              return seen.size;
            }"""
        )

    def elements(self) -> list[dict[str, Any]]:
        """Return what the newest observation of this session lists."""
        (observation,) = self.stack.rows(
            "select observation from annotation_decisionpoint"
            " where session_id = %s and observation is not null order by id desc limit 1",
            self.id,
        )[0]
        return observation["elements"]

    def place(self, role: str, name: str = "") -> tuple[int, int]:
        """Return the centre of an element in frame pixels."""
        for element in self.elements():
            if element["role"] == role and name.lower() in element["name"].lower():
                left, top, width, height = element["box"]
                return left + width // 2, top + height // 2
        raise AssertionError(f"no {role} {name!r} among {self.elements()}")

    def click_desktop(self, place: tuple[int, int]) -> None:
        """Click a place of the desktop with the browser's own mouse, through the relay."""
        canvas = self.page.locator("#desktop canvas")
        expect(canvas).to_have_count(1, timeout=TIMEOUT)  # the controlling stream has taken over
        self.connected()
        box = canvas.bounding_box()
        assert box is not None
        width = float(self.state.get_attribute("data-width") or 1280)
        scale = box["width"] / width
        self.page.mouse.move(box["x"] + place[0] * scale, box["y"] + place[1] * scale)
        self.page.mouse.down()
        self.page.mouse.up()
