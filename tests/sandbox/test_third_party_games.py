"""Games that others wrote: seeded from outside, judged from outside, the same at every rate."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator

import pytest

from sandbox.families import TaskSpec, find
from sandbox.families.games import FAMILY
from sandbox.games.manifest import FOLDER, games
from sandbox.providers.browser import BrowserPage, Fleet, PageSpec
from trajectory import Action, Click, Finish, Hotkey, KeyDown, KeyUp

pytestmark = pytest.mark.timeout(120)

GAMES = [game for game in games() if FOLDER / "third_party" in game.folder.parents]
NAMES = [game.name for game in GAMES]
PLAYED = 60
"""Actions of the scripted player: enough for its first points in every game."""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory) -> Iterator[Fleet]:
    with Fleet(browsers=1, state=tmp_path_factory.mktemp("fleet")) as fleet:
        yield fleet


def opened(fleet: Fleet, task: TaskSpec, seed: int) -> BrowserPage:
    page: BrowserPage = fleet.open(
        PageSpec(task.width, task.height, clock=True, origins=(FOLDER.as_uri() + "/",))
    )
    assert FAMILY.setup(page, task, seed, epoch=0)
    return page


def act(page: BrowserPage, action: Action) -> None:
    page.perform(action, epoch=0, action_id=uuid.uuid4().hex)


def state(page: BrowserPage) -> str:
    return json.dumps(page.evaluate("tandemGame.state()"), sort_keys=True)


def play(page: BrowserPage, task: TaskSpec, seed: int) -> list[str]:
    """Let the scripted player go on until it has points, and return the state after each action."""
    oracle, states = FAMILY.oracle(task, seed), []
    assert oracle is not None
    for _ in range(PLAYED):
        _, action = oracle.decide(page, ())
        if isinstance(action, Finish):
            break
        act(page, action)
        FAMILY.advance(page, task)
        states.append(state(page))
        if FAMILY.verify(page, task, seed).score:
            break
    return states


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_is_one_game_and_the_scripted_player_gets_points(fleet, name: str):
    task = find(FAMILY, name)
    page = opened(fleet, task, 5)
    first, start = state(page), FAMILY.verify(page, task, 5)
    assert (start.reward, start.done) == (0.0, False)
    assert state(page) == first, "the verifier changed the game"
    played = play(page, task, 5)
    scored = FAMILY.verify(page, task, 5)
    assert scored.score and scored.score > 0
    assert not task.reference or 0 < (scored.reward or 0) <= 1
    FAMILY.setup(page, task, 5, epoch=0)
    assert state(page) == first, "what was played before shows"
    assert play(page, task, 5) == played
    assert later(page, task, 6) != later(page, task, 5).replace('"seed": 5', '"seed": 6')
    page.close()


def later(page: BrowserPage, task: TaskSpec, seed: int) -> str:
    """Return the state after the first action and, in a game that moves by itself, six seconds."""
    FAMILY.setup(page, task, seed, epoch=0)
    oracle = FAMILY.oracle(task, seed)
    assert oracle is not None and page.clock is not None
    act(page, oracle.decide(page, ())[1])
    if task.timed:
        page.clock.step(6000)
    return state(page)


MOVES = {
    "chrome-dino": ((100, Hotkey(("up",))), (900, Hotkey(("up",))), (2400, Hotkey(("up",)))),
    "mr-flap": ((150, Hotkey(("up",))), (300, Hotkey(("up",))), (80, Hotkey(("space",)))),
    "brick-physics": (
        (100, Hotkey(("space",))), (200, KeyDown("right")), (350.5, KeyUp("right")),
        (400, KeyDown("left")), (133, KeyUp("left")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_the_same_seed_and_keys_come_to_the_same_end_at_every_rate(fleet, name: str):
    task, ends = find(FAMILY, name), []
    for rate in (None, 1, 16, 100):
        page = opened(fleet, task, 3)
        assert page.clock is not None
        if rate is not None:
            page.clock.rate(rate)
            page.clock.pause()
        for wait, action in MOVES[name]:
            (page.clock.step if rate is None else page.clock.run)(wait)
            act(page, action)
        (page.clock.step if rate is None else page.clock.run)(600)
        ends.append((page.evaluate("performance.now()"), state(page)))
        page.close()
    assert len(set(ends)) == 1, name


def test_a_round_that_was_given_up_earns_nothing(fleet):
    task = find(FAMILY, "classic-2048")
    page = opened(fleet, task, 5)
    play(page, task, 5)
    assert (FAMILY.verify(page, task, 5).score or 0) > 0
    x, y = page.evaluate(
        "(({left, top, width, height}) => [left + width / 2, top + height / 2])"
        "(document.querySelector('.restart-button').getBoundingClientRect())"
    )  # type: ignore[misc]
    act(page, Click(round(x), round(y)))
    again = FAMILY.verify(page, task, 5)
    assert (again.score, again.reward, again.done) == (0, 0.0, True)
    page.close()


@pytest.mark.parametrize("game", GAMES, ids=NAMES)
def test_a_vendored_game_says_where_it_is_from(game):
    package = json.loads((game.folder / "package" / "package.json").read_text())
    said = game.provenance["package"]
    assert said.startswith(f"{package['name']} {package['version']} (npm)")
    assert (game.folder / "LICENSE").read_text().strip()
    notice = (FOLDER.parents[1] / "NOTICE").read_text()
    assert f"third_party/{game.folder.name}" in notice
    # Our own part of the page loads files of this folder and of the common one only.
    page = (game.folder / game.entry).read_text()
    for source in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert (game.folder / source).resolve().is_file(), source
