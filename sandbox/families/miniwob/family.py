"""MiniWoB++ as a task family: one page per task, started anew for each seed without being loaded."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache

from sandbox import miniwob
from sandbox.families.miniwob import pages, server
from sandbox.families.miniwob.oracles import oracle_of
from sandbox.families.protocol import Oracle, SetupFailed, TaskSpec
from sandbox.provider import ActionFailed, Desktop
from sandbox.verdict import Verdict
from trajectory import Navigate

_READY_WITHIN_S = 20.0
_POLL_S = 0.01

# What is left of these pages' widgets would show in the next episode: they are loaded for each one.
_LOADED_ANEW = frozenset({"click-pie", "click-pie-nodelay"})


class MiniWob:
    """The 128 ids of MiniWoB++; the pages come from the installed `miniwob` package."""

    name = pages.FAMILY_NAME

    def list(self) -> Sequence[TaskSpec]:
        return _specs()

    def setup(self, desktop: Desktop, task: TaskSpec, seed: int, *, epoch: int) -> str:
        address = _address(desktop, task.name)
        clock = getattr(desktop, "clock", None)
        here = desktop.evaluate("location.href")
        if here != address or task.name in _LOADED_ANEW:
            action_id = f"setup-{task.name}-{seed}-{time.time_ns()}"
            desktop.perform(Navigate(address), epoch=epoch, action_id=action_id)
        if clock is not None:
            clock.resume()  # a page that loads may wait for its own timers
        said = _until(
            desktop, pages.start_script(task.name, seed), lambda found: isinstance(found, str),
            f"{task.id} to start",
        )  # fmt: skip
        _until(
            desktop, "typeof WOB_TASK_READY !== 'undefined' && WOB_TASK_READY",
            lambda found: found is True, f"{task.id} to be ready",
        )  # fmt: skip
        if clock is not None and task.timed:
            clock.pause()
        return str(said)

    def advance(self, desktop: Desktop, task: TaskSpec) -> None:
        """Let the time pass that an action takes, on a page whose clock is ours; see `pages.TIMED`."""
        clock = getattr(desktop, "clock", None)
        if task.timed and clock is not None:
            clock.step(pages.TIMED[task.name])

    def verify(
        self,
        desktop: Desktop,
        task: TaskSpec,
        seed: int,
        *,
        answer: str = "",
        gave_up: bool = False,
    ) -> Verdict:
        """Judge the page; a player who left it, or loaded it again, has earned nothing."""
        # Where it is too: another page may say of itself whatever it likes.
        said = desktop.evaluate(f"[location.href.split('#')[0], {pages.state_script()}]")
        here, state = said if isinstance(said, list) else ("", None)
        metadata = task.metadata(seed)
        if (
            not isinstance(state, dict)
            or state["episode"] != f"{task.name}/{seed}"
            or here not in _addresses(task.name)
        ):
            return Verdict(0.0, "the page in front is not this episode", False, None, metadata)
        if not state["done"]:
            return Verdict(0.0, "the episode has not ended", False, 0.0, metadata)
        # A page whose own sum fails (0 / 0) says null.
        raw = float(state["raw_reward"] or 0.0)
        reason = f": {state['reason']}" if state["reason"] else ""
        reward = max(0.0, min(1.0, raw / (task.reference or 1.0)))
        return Verdict(reward, f"raw reward {raw:g}{reason}", True, raw, metadata)

    def oracle(self, task: TaskSpec, seed: int) -> Oracle | None:
        return oracle_of(task.name, seed)


FAMILY = MiniWob()


@cache
def _specs() -> tuple[TaskSpec, ...]:
    return tuple(pages.spec(page) for page in pages.names())


def _address(desktop: Desktop, page: str) -> str:
    """Return where `desktop` finds the page: a page of ours reads the host's files, a desktop its own."""
    own, hosts = _addresses(page)
    return hosts if hasattr(desktop, "navigate") else own


def _addresses(page: str) -> tuple[str, str]:
    """Return the page's address on a computer of its own, and on this host.

    A leased page is asked for the first and says that it is at the second.
    """
    if pages.is_flight(page):
        address = f"{server.base()}/flight/{page.removeprefix('flight.')}/wrapper.html"
        return address, address
    return miniwob.url(page), miniwob.url(page, folder=miniwob.assets())


def _until(desktop: Desktop, script: str, ready: Callable[[object], bool], what: str) -> object:
    deadline = time.monotonic() + _READY_WITHIN_S
    refused = ""
    while True:
        try:
            found = desktop.evaluate(script)
            if ready(found):
                return found
        except ActionFailed as error:
            refused = f": {error}"
        if time.monotonic() > deadline:
            raise SetupFailed(f"waited {_READY_WITHIN_S:g} s for {what}{refused}")
        time.sleep(_POLL_S)
