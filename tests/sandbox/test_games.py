"""Every game: the same seed is the same game, its oracle wins, its verifier only reads."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from sandbox import browser
from sandbox.families import NoWay, TaskSpec
from sandbox.families.games import FAMILY
from sandbox.games.manifest import BadManifest, games, read
from sandbox.verdict import Verdict
from tests.sandbox.gamepage import GamePage
from trajectory import Finish, Navigate

TASKS = FAMILY.list()


@pytest.fixture(scope="module")
def page() -> Iterator[GamePage]:
    with browser.headless(width=480, height=640) as port:
        yield GamePage(port)


def state(page: GamePage) -> str:
    return str(page.evaluate("JSON.stringify(tandemGame.state())"))


def play(page: GamePage, task: TaskSpec, seed: int) -> Verdict:
    oracle = FAMILY.oracle(task, seed)
    assert oracle is not None
    for number in range(task.max_steps):
        _, action = oracle.decide(page, ())
        if isinstance(action, Finish):
            break
        page.perform(action, epoch=1, action_id=str(number))
        FAMILY.advance(page, task)
    return FAMILY.verify(page, task, seed)


@pytest.mark.parametrize("task", TASKS, ids=[task.name for task in TASKS])
def test_the_same_seed_is_the_same_game_and_the_oracle_wins_it(page: GamePage, task: TaskSpec):
    said = FAMILY.setup(page, task, 4, epoch=1)
    first = state(page)
    start = FAMILY.verify(page, task, 4)
    assert state(page) == first, "the verifier changed the game"
    assert (start.reward, start.done) == (0.0, False), start.detail
    FAMILY.setup(page, task, 5, epoch=1)
    assert state(page) != first
    won = play(page, task, 5)
    assert won.reward == 1.0
    assert won.as_dict()["metadata"]["checksum"] == task.checksum
    assert FAMILY.setup(page, task, 4, epoch=1) == said
    assert state(page) == first, "what was played before shows"


def test_whoever_leaves_the_page_earns_nothing_and_the_next_setup_comes_back(page: GamePage):
    task = TASKS[0]
    FAMILY.setup(page, task, 0, epoch=1)
    page.perform(Navigate("about:blank"), epoch=1, action_id="away")
    left = FAMILY.verify(page, task, 0)
    assert (left.reward, left.done) == (0.0, False)
    oracle = FAMILY.oracle(task, 0)
    assert oracle is not None
    with pytest.raises(NoWay, match="not the game"):
        oracle.decide(page, ())
    FAMILY.setup(page, task, 0, epoch=1)
    assert FAMILY.verify(page, task, 0).detail == "not over, score 0"


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
    record = json.loads((games()[0].folder / "game.json").read_text())
    record = {"name": "x", **{k: v for k, v in record.items() if k != "name"}, "scoring": "won"}
    record = {k: v for k, v in {**record, "reference": 0, **change}.items() if v is not None}
    folder = tmp_path / "x"
    folder.mkdir()
    (folder / "game.json").write_text(json.dumps(record))
    with pytest.raises(BadManifest, match=message):
        read(folder / "game.json")
