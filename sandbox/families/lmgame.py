"""LMGame-Bench's 2048 in a page: its real environment, never trained on.

Its Sokoban, Tetris and Candy Crush are pages of ours in the family "games", split "out_of_domain",
called sokoban, blocks-drop and candy-crush. They have the rules but not the benchmark's code or levels,
and Blocks Drop moves by itself: no score of them compares with the benchmark's tables. The packages with
those environments need an older numpy or gym, or bring a compiler of their own.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import version
from weakref import WeakKeyDictionary

from sandbox.families.protocol import NoWay, SetupFailed, TaskSpec, checksum
from sandbox.games.lmgame.engine import HEIGHT, PACKAGE, WIDTH, Engine, missing
from sandbox.games.lmgame.window import PAGE, window
from sandbox.games.third_party.classic_2048.oracle import choose
from sandbox.provider import ActionFailed, Desktop
from sandbox.verdict import Verdict
from trajectory import Action, Finish, Hotkey, Navigate, Step

REFERENCE = 5760.0
"""The median of the scripted player over seeds 0 to 5, 400 actions each."""
INSTRUCTION = (
    "2048. Slide all tiles in one direction; two equal tiles that meet become one of twice the number. "
    "Go on until no move is left, and make as many points as you can. Controls: the arrow keys. "
    "Scoring: each merge adds the number of the new tile."
)
_IDLE = "window.idle ? idle().then(() => true) : false"


class LMGame:
    """One task, or none where the package is missing; a seed is one round."""

    name = "lmgame"

    def __init__(self) -> None:
        self._rounds: WeakKeyDictionary[Desktop, tuple[str, Engine]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    @cached_property
    def _tasks(self) -> tuple[TaskSpec, ...]:
        return () if missing() else (_task(self.name),)

    def list(self) -> Sequence[TaskSpec]:
        """Return the tasks; none without the package, and then `setup` says what to install."""
        return self._tasks

    def setup(self, desktop: Desktop, task: TaskSpec, seed: int, *, epoch: int) -> str:
        if lack := missing():
            raise SetupFailed(f"{task.id}: {lack}")
        engine = Engine(seed)
        url = window().open(engine)
        try:
            desktop.perform(Navigate(url), epoch=epoch, action_id=uuid.uuid4().hex)
            if desktop.evaluate(_IDLE) is not True:
                raise SetupFailed(f"{task.id}: {url} does not show the game")
            desktop.observe()  # Chromium drops what is typed into a page that never painted
        except ActionFailed as error:
            raise SetupFailed(f"{task.id}: {error}") from error
        with self._lock:
            self._rounds[desktop] = (url, engine)
        return INSTRUCTION

    def verify(
        self,
        desktop: Desktop,
        task: TaskSpec,
        seed: int,
        *,
        answer: str = "",
        gave_up: bool = False,
    ) -> Verdict:
        """Judge the environment itself, once the page has handed on all keys."""
        metadata = task.metadata(seed)
        with self._lock:
            url, engine = self._rounds.get(desktop, ("", None))
        if engine is None:
            return Verdict(None, "no round was begun on this page", False, metadata=metadata)
        if desktop.evaluate("location.href") == url:
            desktop.evaluate(_IDLE)
        state = engine.state()
        ended = "over" if state.done else "not over"
        reward = min(1.0, state.score / task.reference)
        return Verdict(reward, f"{ended}, score {state.score}", state.done, state.score, metadata)

    def oracle(self, task: TaskSpec, seed: int) -> Player:
        return Player(self)

    def board(self, desktop: Desktop) -> tuple[Sequence[Sequence[int]], bool]:
        """Return the tiles of the round on `desktop`, row by row, and whether it is over."""
        with self._lock:
            _, engine = self._rounds.get(desktop, ("", None))
        if engine is None:
            raise NoWay("no round was begun on this page")
        desktop.evaluate(_IDLE)
        state = engine.state()
        return state.board, state.done


class Player:
    """The scripted player of the family's 2048."""

    def __init__(self, family: LMGame) -> None:
        self._family = family

    def decide(self, desktop: Desktop, steps: Sequence[Step]) -> tuple[str, Action]:
        rows, done = self._family.board(desktop)
        if done:
            return "The game is over.", Finish()
        key = choose(tuple(zip(*rows, strict=True)))
        return f"Sliding {key} keeps the big tiles together.", Hotkey((key,))


def _task(family: str) -> TaskSpec:
    return TaskSpec(
        family=family,
        name="2048",
        version=version(PACKAGE),
        checksum=checksum(version(PACKAGE), PAGE.read_bytes(), INSTRUCTION),
        max_steps=400,
        width=WIDTH,
        height=HEIGHT,
        split="out_of_domain",
        reference=REFERENCE,
        reference_from="script",
        origins=(window().base,),
        tags=("puzzle", "keys"),
        provenance={"licence": "MIT", "package": f"{PACKAGE} {version(PACKAGE)} (PyPI)"},
    )


FAMILY = LMGame()
