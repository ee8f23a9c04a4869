"""Every game: the same seed is the same game, its oracle wins, its verifier only reads."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

import pytest

from sandbox.families import NoWay, TaskSpec, find
from sandbox.families.games import FAMILY
from sandbox.games.manifest import FOLDER, BadManifest, games, read
from sandbox.provider import ActionFailed
from sandbox.providers.browser import Fleet, PageSpec
from sandbox.providers.browser.page import BrowserPage
from sandbox.verdict import Verdict
from trajectory import Action, Click, Finish, Hotkey, Navigate

OURS = [game.name for game in games() if "third_party" not in game.folder.parts]
TASKS = [task for task in FAMILY.list() if task.name in OURS]


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Iterator[BrowserPage]:
    with Fleet(browsers=1, state=tmp_path_factory.mktemp("fleet")) as fleet:
        page = fleet.open(PageSpec(width=480, height=640, clock=True, origins=TASKS[0].origins))
        page.fence(1)
        yield page


def state(page: BrowserPage) -> str:
    return str(page.evaluate("JSON.stringify(tandemGame.state())"))


def act(page: BrowserPage, task: TaskSpec, action: Action) -> None:
    page.perform(action, epoch=1, action_id=uuid.uuid4().hex)
    FAMILY.advance(page, task)


def play(page: BrowserPage, task: TaskSpec, seed: int) -> Verdict:
    oracle = FAMILY.oracle(task, seed)
    assert oracle is not None
    for _ in range(task.max_steps):
        _, action = oracle.decide(page, ())
        if isinstance(action, Finish):
            break
        act(page, task, action)
        verdict = FAMILY.verify(page, task, seed)
        if task.reference and verdict.score:
            break  # a game for points is not played to its end here
    return FAMILY.verify(page, task, seed)


@pytest.mark.parametrize("task", TASKS, ids=OURS)
def test_the_same_seed_is_the_same_game_and_the_oracle_wins_it(page: BrowserPage, task: TaskSpec):
    said = FAMILY.setup(page, task, 4, epoch=1)
    first = state(page)
    start = FAMILY.verify(page, task, 4)
    assert state(page) == first, "the verifier changed the game"
    assert (start.reward, start.done) == (0.0, False), start.detail
    FAMILY.setup(page, task, 5, epoch=1)
    assert state(page) != first
    end = play(page, task, 5)
    if task.reference:
        assert end.score is not None and end.score > 0
        assert end.reward == min(1.0, end.score / task.reference)
    else:
        assert (end.reward, end.done) == (1.0, True), end.detail
    assert end.as_dict()["metadata"]["checksum"] == task.checksum
    assert FAMILY.setup(page, task, 4, epoch=1) == said
    assert state(page) == first, "what was played before shows"


def test_whoever_leaves_the_page_earns_nothing_and_the_next_setup_comes_back(page: BrowserPage):
    task = TASKS[0]
    FAMILY.setup(page, task, 0, epoch=1)
    act(page, task, Navigate("about:blank"))
    left = FAMILY.verify(page, task, 0)
    assert (left.reward, left.done) == (0.0, False)
    oracle = FAMILY.oracle(task, 0)
    assert oracle is not None
    with pytest.raises(NoWay, match="not the game"):
        oracle.decide(page, ())
    task = named("infinity-loop")
    act(page, task, Navigate(f"{FOLDER.as_uri()}/infinity_loop/index.html?seed=1"))
    assert FAMILY.verify(page, task, 0).detail == "the page in front is not the game any more"
    assert FAMILY.verify(page, task, 1).detail == "not over, score 0"
    FAMILY.setup(page, task, 0, epoch=1)
    assert FAMILY.verify(page, task, 0).detail == "not over, score 0"


def named(name: str) -> TaskSpec:
    return find(FAMILY, name)


def test_a_lost_game_is_lost(page: BrowserPage):
    task = named("minefield")
    FAMILY.setup(page, task, 3, epoch=1)
    place = page.evaluate("tandemGame.places()[`cell-${tandemGame.state().mines.indexOf(true)}`]")
    act(page, task, Click(*(round(n) for n in place)))
    lost = FAMILY.verify(page, task, 3)
    assert (lost.reward, lost.done, lost.metadata["lives"]) == (0.0, True, "0")


def test_a_game_on_the_fake_clock_moves_with_actions_only_and_the_same_each_time(page: BrowserPage):
    task, ends = named("lanes"), []
    for _ in range(2):
        FAMILY.setup(page, task, 1, epoch=1)
        before = state(page)
        page.frames(120)
        assert state(page) == before, "time went on without an action"
        verdicts = []
        while not (verdict := FAMILY.verify(page, task, 1)).done:
            act(page, task, Hotkey(("left",)))
            verdicts.append(verdict)
        assert (verdict.metadata["lives"], verdict.reward) != ("1", 1.0)
        ends.append((len(verdicts), verdict, state(page)))
    assert ends[0] == ends[1]


def test_what_a_page_says_of_itself_does_not_win(page: BrowserPage):
    task = named("infinity-loop")
    FAMILY.setup(page, task, 2, epoch=1)
    with pytest.raises(ActionFailed, match="read only"):
        page.evaluate("(() => { 'use strict'; tandemGame.state = () => ({ tiles: [] }); })()")
    page.evaluate("document.querySelector('footer').textContent = 'All loops are closed'")
    assert FAMILY.verify(page, task, 2).reward == 0.0


def test_no_page_knows_a_network_or_unseeded_chance():
    for game in games():
        if "third_party" in game.folder.parts:
            continue
        for path in game.folder.glob("*.[jh]*"):
            text = path.read_text()
            assert "Math.random" not in text
            assert "http:" not in text.replace("http://www.w3.org", "") and "https:" not in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": 1}, "unknown fields \\['colour'\\]"),
        ({"name": None}, "missing fields \\['name'\\]"),
        ({"name": "other"}, "must be called like it"),
        ({"max_steps": "ten"}, "not a number"),
        ({"scoring": "score"}, "a reference above 0"),
        ({"tick_ms": 10}, "timed game"),
    ],
)
def test_a_bad_manifest_is_named(tmp_path, change: dict[str, object], message: str):
    record = json.loads((FOLDER / "infinity_loop" / "game.json").read_text())
    record = {"name": "x", **{k: v for k, v in record.items() if k != "name"}, "scoring": "won"}
    record = {k: v for k, v in {**record, "reference": 0, **change}.items() if v is not None}
    folder = tmp_path / "x"
    folder.mkdir()
    (folder / "game.json").write_text(json.dumps(record))
    with pytest.raises(BadManifest, match=message):
        read(folder / "game.json")
