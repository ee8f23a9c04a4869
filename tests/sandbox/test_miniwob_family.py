"""MiniWoB++ as a family: what it lists and claims, graded pages, and the pages that need a server."""

from __future__ import annotations

import json
import re

import pytest

from sandbox import miniwob
from sandbox.families import find
from sandbox.families import miniwob as package
from sandbox.families.check import page_spec
from sandbox.families.miniwob import FAMILY, pages
from sandbox.families.miniwob.oracles import SCRIPTS, SOLVED
from sandbox.families.play import oracle_player, play
from sandbox.provider import ActionFailed, SandboxSpec
from sandbox.providers import load as load_provider
from sandbox.providers.browser import Fleet
from tests.sandbox.desktops import needs_headless_shell

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    with Fleet(browsers=1, state=tmp_path_factory.mktemp("fleet")) as fleet:
        yield fleet


def test_the_docstring_says_how_many_there_are():
    claimed = re.search(r"its (\d+) small web tasks, with an oracle for (\d+)", package.__doc__)
    assert claimed is not None
    names = {task.name for task in FAMILY.list()}
    assert (len(names), len(SOLVED)) == tuple(int(n) for n in claimed.groups()) == (128, 124)
    assert names >= SOLVED and names.isdisjoint(pages.NO_ID)
    assert not set(SCRIPTS) & set(miniwob.SCRIPTS), "the first twenty keep their own words"


def test_a_checksum_is_over_the_page_and_differs_between_pages():
    sums = {task.checksum for task in FAMILY.list()}
    assert len(sums) == 128


@needs_headless_shell
@pytest.mark.parametrize("name", ["circle-center", "drag-items", "tic-tac-toe", "stock-market"])
def test_graded_dragged_played_and_timed_pages_are_solved(fleet, name):
    task = find(FAMILY, name)
    page = fleet.open(page_spec(task, 0))
    player = oracle_player(FAMILY, task, 1)
    assert player is not None
    verdict = play(page, FAMILY, task, 1, player).verdict
    assert verdict.reward == 1 and verdict.score is not None
    assert (verdict.score < 1) == (name in pages.GRADED)
    page.close()


@needs_headless_shell
def test_a_flight_page_starts_with_its_inner_page(fleet):
    task = find(FAMILY, "flight.AA")
    page = fleet.open(page_spec(task, 0))
    said = FAMILY.setup(page, task, 1, epoch=0)
    assert json.loads(said)
    assert page.evaluate("!!core.flightChildWindow().$miniwob")
    assert FAMILY.verify(page, task, 1).reward == 0
    page.close()


@needs_headless_shell
def test_another_page_or_seed_is_worth_nothing(fleet):
    task = find(FAMILY, "click-test")
    page = fleet.open(page_spec(task, 0))
    FAMILY.setup(page, task, 1, epoch=0)
    address = page.evaluate("location.href")
    assert FAMILY.verify(page, task, 2).reward == 0
    page.navigate("about:blank")
    assert FAMILY.verify(page, task, 1).reward == 0
    page.navigate(address)
    assert FAMILY.verify(page, task, 1).reward == 0  # loaded again: it was not begun
    page.close()


@needs_headless_shell
def test_a_page_that_claims_to_be_solved_earns_nothing(fleet):
    task = find(FAMILY, "click-test")
    page = fleet.open(page_spec(task, 0))
    FAMILY.setup(page, task, 1, epoch=0)
    script = (
        "window.core = {getUtterance: () => 'Click.'}; tandemEpisode = 'click-test/1';"
        "var WOB_TASK_READY = true, WOB_DONE_GLOBAL = true, WOB_RAW_REWARD_GLOBAL = 1,"
        "WOB_REWARD_GLOBAL = 1, WOB_REWARD_REASON = '';"
    )
    page.navigate(f"data:text/html,<script>{script}</script>")
    assert page.evaluate(pages.state_script())["done"]
    assert FAMILY.verify(page, task, 1).reward == 0
    page.close()


@needs_headless_shell
def test_a_page_opens_no_other_file_of_this_machine(fleet):
    task = find(FAMILY, "click-test")
    page = fleet.open(page_spec(task, 0))
    FAMILY.setup(page, task, 1, epoch=0)
    with pytest.raises(ActionFailed, match="may not open"):
        page.navigate("file:///etc/passwd")
    page.close()


@needs_headless_shell
def test_a_post_far_down_is_scrolled_to(fleet):
    task = find(FAMILY, "social-media-all")
    page = fleet.open(page_spec(task, 0))
    player = oracle_player(FAMILY, task, 0)
    assert player is not None
    assert play(page, FAMILY, task, 0, player).verdict.reward == 1
    page.close()


@needs_headless_shell
def test_a_leased_page_is_judged_where_the_host_has_it(tmp_path):
    provider = load_provider("browser", state=tmp_path)
    handle = provider.start(SandboxSpec("miniwob", shared={miniwob.FOLDER: miniwob.assets()}))
    try:
        desktop = provider.connect(handle)
        desktop.fence(1)
        task = find(FAMILY, "click-test")
        FAMILY.setup(desktop, task, 1, epoch=1)
        verdict = FAMILY.verify(desktop, task, 1)
        assert (verdict.reward, verdict.detail) == (0, "the episode has not ended")
        desktop.close()
    finally:
        provider.stop(handle)
