"""Browsers are killed while episodes are played: none is lost, none counts twice, none is rewarded for it.

The same with 500 episodes: `python -m benchmarks.rollouts --chaos`.
"""

from __future__ import annotations

import threading
from argparse import Namespace

import pytest

from benchmarks.rollout_parts import Dawdler, Watched, killing, length
from benchmarks.rollouts import make, verdict
from sandbox.providers.browser import Fleet
from training.models import Episode
from training.rollouts.worker import Worker


@pytest.mark.django_db(transaction=True)
def test_killed_browsers_cost_attempts_and_nothing_else(tmp_path):
    options = Namespace(environments=8, slots=8, batch=32, longest=6)
    rollout = make(options, "chaos", 60, attempts=20, picture=True)
    done = rollout.episodes.filter(state=Episode.State.DONE)

    def policy(seat):
        idle = length(seat.task.name, seat.episode.seed, most=3)
        return Dawdler(seat, idle, 0.0, [], gives_up=seat.episode.seed % 2 == 1)

    with Fleet(2, tmp_path, pages=4) as fleet:
        pages = Watched(fleet)
        worker = Worker(name="chaos", pages=pages, environments=8, policy_for=policy)
        stopping = threading.Event()
        timer = threading.Timer(100, stopping.set)
        timer.start()
        with killing(pages, finished=done.count, every=20):
            worker.run(stopping, until_empty=True)
        timer.cancel()
    found = verdict(rollout)
    assert pages.killed >= 2 and found["attempts_that_broke"] >= 2
    assert found["done"] == found["episodes"] == 60
    assert not (found["lost"] or found["counted_twice"] or found["wrong_reward"])
    assert "desktop lost" in found["causes"]
    assert not worker.running
