"""Games in a page: our own and third-party ones, each a folder below `sandbox/games`.

What a game must have is said in `sandbox.games.manifest`. Timed games run on the fake clock of the
desktop where it has one: `setup` pauses it, and whoever plays calls `advance(desktop, task)` once after
every action, which lets `tick_ms` of virtual time pass. Between actions the game stands still, so the
picture and the verdict are of the same moment. Without a fake clock the game runs in real time.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec

from sandbox.families.protocol import Oracle, SetupFailed, TaskSpec
from sandbox.games.manifest import FOLDER, Game, games
from sandbox.games.player import Player
from sandbox.provider import ActionFailed, Desktop, SandboxError
from sandbox.verdict import Verdict
from trajectory import Navigate

_READY_WITHIN_S = 10.0
_POLL_S = 0.02
_READY = "document.readyState === 'complete' && !!window.tandemGame"

_JUDGE = """(() => {
  const state = tandemGame.state();
  return "seed" in state && state.seed !== %(seed)d ? null : (
%(verifier)s
)(state);
})()"""


class VerifierFailed(SandboxError):
    """A game's verifier threw or gave no verdict: the game is broken, not the player."""


class Games:
    """The family "games": one task a game, one level or one round a seed."""

    name = "games"

    @cached_property
    def _games(self) -> Mapping[str, Game]:
        return {game.name: game for game in games()}

    @cached_property
    def _tasks(self) -> tuple[TaskSpec, ...]:
        return tuple(_task(self.name, game) for game in self._games.values())

    def list(self) -> Sequence[TaskSpec]:
        return self._tasks

    def setup(self, desktop: Desktop, task: TaskSpec, seed: int, *, epoch: int) -> str:
        """Open the game's page where it is not open yet, start `seed`, and return what to do."""
        game = self._games[task.name]
        clock = getattr(desktop, "clock", None) if game.timed else None
        try:
            if game.reload or not desktop.evaluate(_here(game, _READY)):
                target = f"{game.url}?seed={seed}"
                desktop.perform(Navigate(target), epoch=epoch, action_id=uuid.uuid4().hex)
                _wait_until_ready(desktop, game)
                desktop.observe()  # Chromium drops what is typed into a page that never painted
            if clock is not None:
                clock.pause()
            settings = json.dumps(dict(game.settings))
            started = desktop.evaluate(f"tandemGame.start({int(seed)}, {settings})")
        except ActionFailed as error:
            raise SetupFailed(f"{task.id} with seed {seed}: {error}") from error
        if started is not True:
            raise SetupFailed(f"{task.id} with seed {seed}: the page gave {started!r} for a start")
        return game.text

    def advance(self, desktop: Desktop, task: TaskSpec) -> None:
        """Let the time of one action pass; to be called once after each action."""
        game = self._games[task.name]
        clock = getattr(desktop, "clock", None)
        if game.timed and clock is not None:
            clock.step(game.tick_ms)

    def verify(
        self,
        desktop: Desktop,
        task: TaskSpec,
        seed: int,
        *,
        answer: str = "",
        gave_up: bool = False,
    ) -> Verdict:
        """Judge the game by its verifier.

        A player who left the page, or opened it with another seed, has earned nothing.
        """
        game = self._games[task.name]
        script = _here(game, _JUDGE % {"seed": int(seed), "verifier": game.verifier})
        try:
            state = desktop.evaluate(script)
        except ActionFailed as error:
            raise VerifierFailed(f"{task.id}: {error}") from error
        metadata = task.metadata(seed)
        if state is None:
            return Verdict(0.0, "the page in front is not the game any more", False, None, metadata)
        if not isinstance(state, Mapping) or not {"score", "done", "won"} <= set(state):
            raise VerifierFailed(f"{task.id}: the verifier gave {state!r}")
        return _verdict(game, state, metadata)

    def oracle(self, task: TaskSpec, seed: int) -> Oracle | None:
        game = self._games[task.name]
        return Player(game) if find_spec(game.module) is not None else None


FAMILY = Games()


def _task(family: str, game: Game) -> TaskSpec:
    return TaskSpec(
        family=family,
        name=game.name,
        version=game.version,
        checksum=game.checksum(),
        max_steps=game.max_steps,
        width=game.width,
        height=game.height,
        split=game.split,
        reference=float(game.reference),
        reference_from=game.reference_from,
        timed=game.timed,
        origins=(f"{FOLDER.as_uri()}/",),
        tags=game.tags,
        provenance={"licence": game.licence, **game.provenance},
    )


def _here(game: Game, expression: str) -> str:
    """Return JavaScript that gives `expression` on the game's page and null anywhere else."""
    return (
        f"(() => location.href.split('?')[0] === {json.dumps(game.url)} && window.tandemGame"
        f" ? {expression} : null)()"
    )


def _wait_until_ready(desktop: Desktop, game: Game) -> None:
    deadline = time.monotonic() + _READY_WITHIN_S
    while time.monotonic() < deadline:
        if desktop.evaluate(_here(game, _READY)) is True:
            return
        time.sleep(_POLL_S)
    raise SetupFailed(f"{game.url} showed no game within {_READY_WITHIN_S:g} s")


def _verdict(game: Game, state: Mapping[str, object], metadata: dict[str, str]) -> Verdict:
    score, won, done = float(str(state["score"])), bool(state["won"]), bool(state["done"])
    for name in ("level", "lives"):
        if state.get(name) is not None:
            metadata[name] = str(state[name])
    if game.scoring == "won":
        reward = 1.0 if won else 0.0
    else:
        reward = min(1.0, max(0.0, score / game.reference))
    ended = "won" if won else "over" if done else "not over"
    return Verdict(reward, f"{ended}, score {score:g}", done, score, metadata)
