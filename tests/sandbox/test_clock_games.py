"""A game comes to the same end, whatever the rate at which its time passes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.families.games import FAMILY
from sandbox.games.manifest import FOLDER
from sandbox.providers.browser import BrowserPage, Fleet, PageSpec
from tests.sandbox import pages
from trajectory import Hotkey, KeyDown, KeyUp

pytestmark = pytest.mark.timeout(120)

WORLD = "({...world, shown: getComputedStyle(bar).left, now: performance.now(), date: Date.now()})"
MOVES = (
    (250, KeyDown("right")), (400, KeyUp("right")), (133, KeyDown("left")), (610.5, KeyUp("left")),
    (300, KeyDown("right")),
)  # fmt: skip

JUMPS = ((60, Hotkey(("up",))), (650, Hotkey(("up",))), (333, Hotkey(("up",))))
OTHERS = {
    "chrome-dino": JUMPS,
    "mr-flap": ((60, Hotkey(("space",))), (450, Hotkey(("space",))), (333, Hotkey(("space",)))),
    "brick-physics": (
        (60, Hotkey(("space",))), (200, KeyDown("right")), (433, KeyUp("right")),
    ),
    "snake": ((150, Hotkey(("up",))), (400, Hotkey(("right",))), (333, Hotkey(("down",)))),
}  # fmt: skip
"""Games of others from their packages and one of our own, each with what is done at what time."""


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    with Fleet(browsers=2) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with pages.served({"/": pages.GAME}) as port:
        yield f"http://127.0.0.1:{port}/"


def play(fleet: Fleet, url: str, rate: float | None, seed: int = 3) -> object:
    """Press keys at fixed times of the game and return its state; without a rate by steps."""
    page: BrowserPage = fleet.open(
        PageSpec(width=200, height=200, clock=True, seed=seed, origins=(url,))
    )
    page.navigate(url)
    assert page.clock is not None
    if rate is not None:
        page.clock.rate(rate)
    for number, (wait, action) in enumerate(MOVES):
        (page.clock.step if rate is None else page.clock.run)(wait)
        page.perform(action, epoch=0, action_id=str(number))
        if rate is None:
            page.observe()
    page.clock.step(700)
    said = page.evaluate(WORLD)
    page.close()
    return said


def test_the_same_seed_and_moves_come_to_the_same_end_at_every_rate(fleet, site):
    stepped = play(fleet, site, None)
    assert stepped["score"] > 0 and stepped["ticks"] > 10 and len(stepped["log"]) == 3
    for rate in (1, 16, 100):
        assert play(fleet, site, rate) == stepped, f"at rate {rate}"
    assert play(fleet, site, None, seed=4) != stepped


def round_of(fleet: Fleet, name: str, rate: float | None) -> object:
    """Play a round of a shipped game as `play` does and return its state and a picture of it."""
    task = next(task for task in FAMILY.list() if task.name == name)
    page = fleet.open(
        PageSpec(task.width, task.height, clock=True, seed=5, origins=(f"{FOLDER.as_uri()}/",))
    )
    FAMILY.setup(page, task, 5, epoch=0)
    clock = page.clock
    assert clock is not None
    if rate is not None:
        clock.rate(rate)
    begun = page.evaluate("tandemGame.state()")
    for number, (wait, action) in enumerate(OTHERS[name]):
        (clock.step if rate is None else clock.run)(wait)
        page.perform(action, epoch=0, action_id=str(number))
    clock.step(400)
    ended = page.evaluate("tandemGame.state()")
    assert ended != begun, "nothing has happened"
    picture = page.observe().png
    page.close()
    return ended, picture


@pytest.mark.parametrize("name", OTHERS)
def test_games_of_others_and_ours_end_the_same_at_every_rate(fleet, name):
    stepped = round_of(fleet, name, None)
    for rate in (1, 16, 100):
        state, picture = round_of(fleet, name, rate)
        assert state == stepped[0], f"at rate {rate}"
        assert picture == stepped[1], f"at rate {rate}"
