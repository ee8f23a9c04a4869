"""A second implementation of what rollouts are played with: a family, pages and policies of paper."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from sandbox import families
from sandbox.families import TaskSpec, checksum
from sandbox.provider import ActionResult, DesktopLost, Frame
from sandbox.verdict import Verdict
from training.rollouts.worker import Worker
from trajectory import Click, Element, Sample

PNG = b"\x89PNG paper"


class PaperPage:
    """A desktop that counts clicks; it is lost at the click that `lost_at` names."""

    width, height = 160, 210

    def __init__(self, lost_at: int | None = None):
        self.clicks, self.lost_at, self.closed, self.goal = 0, lost_at, False, 0

    def observe(self, *, elements=False):
        found = (Element("button", f"click {self.clicks}", (0, 0, 20, 20)),)
        return Frame(PNG, self.width, self.height, found if elements else None, "paper", 0.0)

    def settle(self, *, quiet_ms=150, max_ms=2000):
        return True

    def perform(self, action, *, epoch, action_id):
        if self.clicks == self.lost_at:
            raise DesktopLost("killed by signal 9")
        self.clicks += 1
        return ActionResult()

    def close(self):
        self.closed = True


class PaperPages:
    """Gives out paper pages, and remembers them; `plan` says at which click the n-th one is lost."""

    def __init__(self, plan: Callable[[int], int | None] = lambda n: None):
        self.plan, self.opened, self._lock = plan, [], threading.Lock()

    def open(self, spec):
        with self._lock:
            page = PaperPage(self.plan(len(self.opened)))
            self.opened.append(page)
        return page


class Toys:
    """The family "toys": click as often as the task's name says ("n3"), and it is over."""

    name = "toys"

    def __init__(self):
        self.tasks = tuple(
            TaskSpec("toys", f"n{n}", "1", checksum("toys", n), max_steps=40, width=160, height=210)
            for n in range(1, 31)
        )

    def list(self):
        return self.tasks

    def setup(self, desktop, task, seed, *, epoch):
        desktop.clicks = 0
        return f"Click {task.name[1:]} times."

    def verify(self, desktop, task, seed, *, answer="", gave_up=False):
        done = desktop.clicks >= int(task.name[1:])
        return Verdict(
            1.0 if done else 0.0, f"{desktop.clicks} clicks", done, float(desktop.clicks)
        )

    def oracle(self, task, seed):
        return None


class Clicker:
    """Clicks, and takes `seconds` for it; says which version it is each time it is asked."""

    def __init__(self, seconds: float = 0.0, version: Callable[[], str] = lambda: "v1"):
        self.seconds, self.version, self.asked = seconds, version, 0

    def propose(self, request, k):
        from agent.policy import Candidate

        self.asked += 1
        if self.seconds:
            time.sleep(self.seconds)
        version = self.version()
        sample = Sample((1, 2), (3, 4), (-0.5, -0.25), version)
        return [Candidate("I click.", Click(5, 5), "", sample=sample, version=version)]


@pytest.fixture
def toys(monkeypatch):
    """Put the family of toys into the registry for one test."""
    family, load = Toys(), families.load
    monkeypatch.setattr(families, "load", lambda name: family if name == "toys" else load(name))
    return family


def worker(pages=None, *, policy=None, environments: int = 8, name: str = "w1") -> Worker:
    policy = policy or Clicker()
    return Worker(
        name=name,
        pages=pages if pages is not None else PaperPages(),
        environments=environments,
        policy_for=lambda seat: policy,
    )


def play_all(player: Worker, *, within_s: float = 90.0) -> None:
    """Run a worker until no rollout is live any more."""
    stopping = threading.Event()
    timer = threading.Timer(within_s, stopping.set)
    timer.start()
    try:
        player.run(stopping, until_empty=True)
    finally:
        timer.cancel()
    assert not stopping.is_set(), f"not done within {within_s:g} s"
