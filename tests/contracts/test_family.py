"""What every family of tasks promises; a family joins by its line in `sandbox.families`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from io import BytesIO

import pytest
from PIL import Image, ImageChops

from sandbox import families
from sandbox.families import SetupFailed, TaskFamily, TaskSpec, UnknownTask, find, load
from sandbox.families.check import page_spec
from sandbox.families.play import oracle_player, play, random_player
from sandbox.provider import Desktop, SandboxSpec
from sandbox.providers import load as load_provider
from sandbox.providers.browser import Fleet
from tests.sandbox.desktops import needs_local

SEEDS = (0, 1)
SAMPLE = 2
"""Tasks of a family that are played here; `python -m sandbox.families.check` plays them all."""

pytestmark = pytest.mark.timeout(180)


@cache
def surfaces(name: str) -> frozenset[str]:
    return frozenset(task.surface for task in load(name).list())


def sample(family: TaskFamily, count: int = SAMPLE) -> list[TaskSpec]:
    """Return tasks from all over the list, the same on every run."""
    tasks = family.list()
    return [tasks[n * len(tasks) // count] for n in range(min(count, len(tasks)))]


@pytest.fixture(params=families.NAMES)
def family(request: pytest.FixtureRequest) -> TaskFamily:
    return load(request.param)


PAGE = [name for name in families.NAMES if "page" in surfaces(name)]
DESKTOP = [name for name in families.NAMES if "desktop" in surfaces(name)]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with Fleet(browsers=1, state=tmp_path_factory.mktemp("fleet")) as fleet:
        yield fleet


@pytest.fixture
def opened(fleet: Fleet) -> Iterator[Callable[[TaskSpec, int], Desktop]]:
    """Open pages as a task needs them; they are given back at the end."""
    with ExitStack() as stack:

        def open(task: TaskSpec, seed: int = 0) -> Desktop:
            page = fleet.open(page_spec(task, seed))
            stack.callback(page.close)
            return page

        yield open


def alike(one: bytes, other: bytes) -> bool:
    """Whether two pictures look the same: a soft edge may come out a shade lighter the next time."""
    pictures = [Image.open(BytesIO(png)).convert("RGB") for png in (one, other)]
    if pictures[0].size != pictures[1].size:
        return False
    return max(high for _, high in ImageChops.difference(*pictures).getextrema()) <= 8


def epoch(desktop: Desktop) -> int:
    return int(str(desktop.health()["epoch"]))


# -- the list: without any computer ------------------------------------------------------------


def test_the_list_is_the_same_each_time_and_names_each_task_once(family: TaskFamily) -> None:
    tasks = family.list()
    assert tasks and list(tasks) == list(family.list())
    assert len({task.name for task in tasks}) == len(tasks)
    for task in tasks:
        assert task.family == family.name
        assert task.version and len(task.checksum) == 64 and int(task.checksum, 16)
        assert task.max_steps > 0 and task.width > 0 and task.height > 0
        assert bool(task.reference) == bool(task.reference_from)
        assert find(family, task.name) == task
    json.dumps([task.as_dict() for task in tasks])


def test_an_unknown_task_is_refused_by_name(family: TaskFamily) -> None:
    name = family.list()[0].name
    with pytest.raises(UnknownTask, match=f"{family.name} has no task"):
        find(family, name + "-not")
    assert families.task(f"{family.name}/{name}") == (family, find(family, name))


def test_an_unknown_family_is_refused_by_name() -> None:
    with pytest.raises(UnknownTask, match="no task family 'nothing'"):
        load("nothing")


# -- in a page ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGE)
def test_a_seed_gives_the_same_start_and_nothing_is_won_by_starting(name, opened) -> None:
    family = load(name)
    instructions, screens = set(), set()
    for task in sample(family):
        page = opened(task)
        starts = []
        for seed in (*SEEDS, SEEDS[0]):
            said = family.setup(page, task, seed, epoch=epoch(page))
            page.settle()  # what glides in has arrived
            before = page.observe().png
            verdict = family.verify(page, task, seed)
            assert (verdict.reward, verdict.done) == (0.0, False), (task.id, verdict)
            assert family.verify(page, task, seed) == verdict
            starts.append((said, before))
            instructions.add((task.name, said))
            screens.add((task.name, before))
        assert starts[0][0] == starts[-1][0], f"{task.id}: the same seed says something else"
        assert alike(starts[0][1], starts[-1][1]), f"{task.id}: the same seed looks different"
        page.close()
    assert len(instructions | screens) > len(sample(family)), (
        "no task of the sample differs by its seed"
    )


@pytest.mark.parametrize("name", PAGE)
def test_a_verdict_says_what_was_judged(name, opened) -> None:
    family = load(name)
    task = family.list()[0]
    page = opened(task)
    family.setup(page, task, 3, epoch=epoch(page))
    said = family.verify(page, task, 3).as_dict()
    assert set(said) == {"reward", "done", "score", "detail", "metadata"}
    assert said["metadata"].items() >= task.metadata(3).items()
    json.dumps(said)


@pytest.mark.parametrize("name", PAGE)
def test_the_oracle_is_worth_one(name, opened) -> None:
    family = load(name)
    # Short ones: the suite has to stay light.
    short = [task for task in family.list() if task.max_steps <= 100]
    solved = [task for task in short if family.oracle(task, 0) is not None]
    for task in sorted(solved, key=lambda task: (task.timed, task.max_steps))[:SAMPLE]:
        page = opened(task)
        player = oracle_player(family, task, SEEDS[1])
        assert player is not None
        result = play(page, family, task, SEEDS[1], player)
        assert result.verdict.reward == 1, (task.id, result)
        page.close()


@pytest.mark.parametrize("name", PAGE)
def test_anything_may_be_done_and_it_is_still_judged(name, opened) -> None:
    family = load(name)
    for task in sample(family, 1):
        page = opened(task)
        result = play(page, family, task, 5, random_player(task, 5))
        assert result.verdict.reward is None or 0 <= result.verdict.reward <= 1
        page.close()


# -- on a desktop ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def desktop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desktop]:
    provider = load_provider("local", state=tmp_path_factory.mktemp("families"))
    handle = provider.start(SandboxSpec("families"))
    found = provider.connect(handle)
    found.fence(1)
    yield found
    found.close()
    provider.stop(handle)


@needs_local
@pytest.mark.parametrize("name", DESKTOP)
def test_a_desktop_task_starts_twice_and_is_judged(name, desktop) -> None:
    family = load(name)
    task = next(t for t in family.list() if t.surface == "desktop")
    for _ in range(2):
        try:
            said = family.setup(desktop, task, 0, epoch=epoch(desktop))
        except SetupFailed as error:
            pytest.skip(f"{task.id} needs what this computer has not: {error}")
        assert said
    verdict = family.verify(desktop, task, 0)
    assert verdict.reward != 1
    assert verdict.metadata.items() >= task.metadata(0).items()
