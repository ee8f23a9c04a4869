"""What is left of an iteration wherever its driver is killed, and whoever looks at the same time."""

# Fixtures come by import, and are named as parameters.
# ruff: noqa: F811

from __future__ import annotations

import dataclasses
import threading

import pytest
from django.db import connection

from tests.training.iteration_parts import (  # noqa: F401
    CONFIG,
    begin,
    box,
    now,
    partner,
    place,
    play,
    toys,
    train,
    turn,
    whole,
)
from training.errors import WrongState
from training.iterations import driver, iterations, phases, serving
from training.models import Dataset, Evaluation, Iteration, Promotion, Rollout, Run

pytestmark = pytest.mark.django_db

State = Iteration.State


class Killed(BaseException):
    """What a signal does: no handler of errors sees it."""


def children() -> dict[str, int]:
    models = (Rollout, Evaluation, Dataset, Run, Promotion, Iteration)
    return {model.__name__: model.objects.count() for model in models}


def test_a_driver_that_is_killed_after_any_begin_makes_nothing_twice(begin, monkeypatch):
    kills = 0
    save = Iteration.save

    def dying(self, *args, **more):
        """Be killed the first time in each phase and record, before or after the row is saved."""
        nonlocal kills
        mark = (self.phase, str(self.phases))
        if mark in seen:
            return save(self, *args, **more)
        seen.add(mark)
        kills += 1
        if kills % 2:
            save(self, *args, **more)
        raise Killed

    seen: set[tuple[str, str]] = set()
    advance = driver.advance

    def stubborn(pk):
        while True:
            try:
                return advance(pk)
            except Killed:
                continue

    row = begin()
    monkeypatch.setattr(Iteration, "save", dying)
    monkeypatch.setattr(driver, "advance", stubborn)
    row = whole(row)
    assert row.state == State.DONE, row.error
    assert kills >= len(phases.PHASES)
    assert children() == {
        "Rollout": 3, "Evaluation": 2, "Dataset": 2, "Run": 1, "Promotion": 1, "Iteration": 1,
    }  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_drivers_that_look_at_once_make_one_child(begin):
    row = begin()
    start = threading.Barrier(4)
    broke: list[BaseException] = []

    def look():
        try:
            start.wait(60)
            driver.go(row.pk)
        except BaseException as error:
            broke.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    turn(row)
    assert broke == [] and now(row).phase == "collect" and now(row).state == State.RUNNING
    assert Rollout.objects.count() == 1 and now(row).rollout.episodes.count() == 4


def test_looking_twice_changes_nothing(begin):
    row = turn(begin())
    before = children()
    assert not driver.advance(row.pk) and not driver.advance(row.pk)
    assert children() == before


def test_a_freeze_that_is_killed_leaves_nothing_and_is_done_again(begin, monkeypatch):
    row = turn(begin())
    play(row.rollout)
    play(turn(row).baseline.rollout, solved=4)
    at_freeze = turn(row, until="freeze")
    frozen: list[int] = []

    def dying(*args):
        frozen.append(Dataset.objects.count())
        raise Killed

    phase = dataclasses.replace(phases.PHASES["freeze"], begin=dying)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setitem(phases.PHASES, "freeze", phase)
        driver.advance(at_freeze.pk)
    assert frozen == [2] and Dataset.objects.count() == 0
    row = turn(row)
    assert row.sft_dataset.name == "iteration-1-freeze-sft" and Dataset.objects.count() == 2


def test_a_chain_that_can_t_go_on_says_so_and_keeps_what_is_done(begin, partner, monkeypatch):
    def refuse(*args, **more):
        raise WrongState("partner serves nothing known")

    monkeypatch.setattr(iterations, "follow", refuse)
    row = whole(begin(count=2))
    assert row.state == State.DONE and row.promotion is not None
    assert row.error == "No iteration follows: partner serves nothing known"


def test_an_iteration_is_followed_once(begin):
    row = whole(begin())
    iterations.repeat(row)
    with pytest.raises(WrongState, match="followed by iteration-2"):
        iterations.repeat(now(row))


def test_a_server_that_is_not_there_yet_is_waited_for(begin, monkeypatch):
    monkeypatch.setattr(serving, "ready", lambda row, wanted: False)
    row = begin()
    assert not driver.advance(row.pk) and now(row).phases == {}


def test_a_server_that_does_not_come_up_stops_it_with_the_reason(begin, monkeypatch):
    def fail(row, wanted):
        raise serving.ServerFailed("no memory for box")

    monkeypatch.setattr(serving, "ready", fail)
    row = turn(begin())
    assert row.state == State.FAILED and row.error == "no memory for box"
    assert row.phases["deploy"]["state"] == "failed" and len(row.phases) == 1
