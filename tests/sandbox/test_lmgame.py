"""LMGame-Bench's 2048: the package's own environment, played by keys in a page."""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterator

import pytest
from PIL import Image

from sandbox.families import SetupFailed, TaskSpec
from sandbox.families.lmgame import FAMILY, LMGame
from sandbox.games.lmgame import engine
from sandbox.games.lmgame.window import KEPT, Window
from sandbox.providers.browser import BrowserPage, Fleet, PageSpec
from trajectory import Hotkey, Navigate, Type

needs = pytest.mark.skipif(bool(engine.missing()), reason=engine.missing() or "installed")


@pytest.fixture(scope="module")
def task() -> TaskSpec:
    return FAMILY.list()[0]


@pytest.fixture(scope="module")
def page(tmp_path_factory, task: TaskSpec) -> Iterator[BrowserPage]:
    with Fleet(browsers=1, state=tmp_path_factory.mktemp("fleet")) as fleet:
        yield fleet.open(PageSpec(task.width, task.height, origins=task.origins))


def act(page: BrowserPage, action: object) -> None:
    page.perform(action, epoch=0, action_id=uuid.uuid4().hex)  # type: ignore[arg-type]


def board(page: BrowserPage) -> object:
    return FAMILY.board(page)[0]


@needs
def test_a_seed_is_one_round_and_the_scripted_player_gets_points(page, task):
    assert (task.split, task.id) == ("out_of_domain", "lmgame/2048")
    assert "arrow keys" in FAMILY.setup(page, task, 3, epoch=0)
    first, start = board(page), FAMILY.verify(page, task, 3)
    assert (start.reward, start.done, start.score) == (0.0, False, 0.0)
    oracle, ends = FAMILY.oracle(task, 3), []
    for _ in range(2):
        FAMILY.setup(page, task, 3, epoch=0)
        assert board(page) == first
        for _ in range(12):
            act(page, oracle.decide(page, ())[1])
        verdict = FAMILY.verify(page, task, 3)
        assert verdict.score and verdict.score > 20 and verdict.reward
        ends.append((board(page), verdict))
    assert ends[0] == ends[1] and ends[0][1].metadata["checksum"] == task.checksum
    FAMILY.setup(page, task, 4, epoch=0)
    assert board(page) != first


@needs
def test_the_page_shows_what_the_environment_draws(page, task):
    FAMILY.setup(page, task, 3, epoch=0)
    url = str(page.evaluate("location.href"))
    act(page, Hotkey(("left",)))
    act(page, Type("not a move"))
    FAMILY.verify(page, task, 3)
    shown = Image.open(io.BytesIO(page.observe().png)).convert("RGB")
    drawn = Image.open(io.BytesIO(engine_of(url).picture())).convert("RGB")
    assert shown.size == drawn.size == (task.width, task.height)
    assert shown.tobytes() == drawn.tobytes()


def engine_of(url: str) -> engine.Engine:
    from sandbox.games.lmgame.window import window

    found = window().engine(url.rstrip("/").rsplit("/", 1)[1])
    assert found is not None
    return found


@needs
def test_a_round_goes_on_counting_when_the_page_was_left_and_is_over_when_no_move_is_left(
    page, task
):
    FAMILY.setup(page, task, 3, epoch=0)
    rounds = engine_of(str(page.evaluate("location.href")))
    for _ in range(3000):
        for key in engine.KEYS:
            rounds.press(key)
        if rounds.state().done:
            break
    act(page, Navigate("about:blank"))
    verdict = FAMILY.verify(page, task, 3)
    assert verdict.done and verdict.detail.startswith("over")
    assert FAMILY.oracle(task, 3) is not None


@needs
def test_old_rounds_make_room():
    window = Window()
    urls = [window.open(engine.Engine(0)) for _ in range(KEPT + 1)]
    tokens = [url.rstrip("/").rsplit("/", 1)[1] for url in urls]
    assert window.engine(tokens[0]) is None and window.engine(tokens[1]) is not None
    window.close()


def test_without_the_package_there_is_no_task_and_setup_says_what_to_install(monkeypatch):
    task = TaskSpec("lmgame", "2048", "1", "0")
    monkeypatch.setattr(engine, "PACKAGE", "no-such-package")
    family = LMGame()
    assert family.list() == ()
    with pytest.raises(SetupFailed, match=r"pip install -e '\.\[games\]'"):
        family.setup(None, task, 0, epoch=0)  # type: ignore[arg-type]
