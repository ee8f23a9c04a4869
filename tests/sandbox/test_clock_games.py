"""A game comes to the same end, whatever the rate at which its time passes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.providers.browser import BrowserPage, Fleet, PageSpec
from tests.sandbox import pages
from trajectory import KeyDown, KeyUp

pytestmark = pytest.mark.timeout(120)

WORLD = "({...world, shown: getComputedStyle(bar).left, now: performance.now(), date: Date.now()})"
MOVES = (
    (250, KeyDown("right")), (400, KeyUp("right")), (133, KeyDown("left")), (610.5, KeyUp("left")),
    (300, KeyDown("right")),
)  # fmt: skip


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    with Fleet(browsers=1) as fleet:
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
