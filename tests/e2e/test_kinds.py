"""The workbench shows and controls every kind of computer, in real Chromium."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.e2e import kinds
from tests.e2e.kinds import KINDS
from tests.e2e.stack import Stack
from tests.e2e.workbench import Workbench, sign_in
from tests.sandbox.desktops import needs_container, needs_qemu, skip_without_image
from tests.sandbox.phones import needs_adb
from tests.waiting import until
from trajectory import action_from_dict

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(autouse=True)
def own_partner(stack: Stack) -> Iterator[None]:
    yield
    kinds.withdraw(stack)


@pytest.mark.parametrize(
    "name",
    [
        "local",
        pytest.param("container", marks=needs_container),
        pytest.param("qemu", marks=needs_qemu),
        pytest.param("android", marks=needs_adb),
    ],
)
def test_a_computer_is_seen_and_worked_on(stack: Stack, page: Page, name: str) -> None:
    if name == "container":
        skip_without_image()
    kind = KINDS[name]
    with kinds.computers(stack, name) as phone:
        kinds.offer(stack, kind)
        sign_in(page, stack, "annotator")
        work = Workbench(page, stack)
        work.start()
        proposed, scripted = work.proposals()[0]["action"], kind.proposals[0][0]["action"]
        assert action_from_dict(proposed) == action_from_dict(scripted)
        assert stack.rows(
            "select s.provider from sandbox_sandbox s join sandbox_lease l on l.sandbox_id = s.id"
            " join annotation_session a on a.lease_id = l.id where a.id = %s",
            work.id,
        ) == [(name,)]

        # What it shows is there, in its own size and not distorted.
        until(lambda: work.colours() > 3, "picture")
        assert work.canvas() == work.frame()
        box = page.locator("#desktop canvas").bounding_box()
        assert box is not None
        width, height = work.frame()
        assert abs(box["width"] / box["height"] - width / height) < 0.01

        work.accept()  # accepts the first proposal
        before = work.picture()
        work.proposals()
        work.take_over()
        kind.hand(work)
        until(lambda: work.picture() != before, "change of the live picture")
        work.hand_back("The task asks for it.")
        by = "select actor from annotation_step where session_id = %s order by index"
        actors = [actor for (actor,) in stack.rows(by, work.id)]
        assert actors[0] == "agent" and set(actors[1:]) == {"human"}
        kind.proof(work, phone)
        if name == "android":
            work.phase("ready")
            work.finish("The note is there.")
