"""A run from launch to its end, with a trainer that is really a process; and every way of dying."""

from __future__ import annotations

import datetime as dt
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from blobs import StoreUnreachable, open_store
from tests.training.sessions import make_session
from tests.waiting import until
from training import jobs
from training.data import datasets
from training.data.selection import Filters
from training.errors import WrongState
from training.models import Checkpoint, Dataset, Run
from training.presets import presets_of
from training.runs import process, runs, supervise, workdir

WAIT_S = 100  # for a thread that ends by itself
State = Run.State
MANIFEST = {"format": 1, "dialect": "element", "observation": "elements"}


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings) -> Iterator[None]:
    settings.RUNS_DIR = tmp_path / "runs"
    settings.STORAGE_URL = f"file://{tmp_path / 'store'}"
    monkeypatch.setattr(runs, "TRAINERS", "tests.training.standin")
    monkeypatch.setattr(supervise, "TRAINERS", "tests.training.standin")
    monkeypatch.setattr(supervise, "POLL_S", 0.05)
    yield
    end_trainers(settings.RUNS_DIR)


def end_trainers(folder: Path) -> None:
    """Leave no trainer behind, also where a test failed in the middle."""
    for directory in folder.glob("*"):
        if process.held(directory):
            process.adopt(directory).send(signal.SIGKILL)


@pytest.fixture(autouse=True)
def queued(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Which runs were put into the queue; nothing is delivered."""
    seen: list[int] = []
    monkeypatch.setattr(jobs.supervise_run, "apply_async", lambda args, **_: seen.append(args[0]))
    return seen


@pytest.fixture
def base(db: None) -> Checkpoint:
    return Checkpoint.objects.create(version="box", uri="/nowhere", manifest=MANIFEST)


@pytest.fixture
def dataset(db: None) -> Dataset:
    make_session()
    return datasets.freeze(name="clicks", pool="sft", filters=Filters(), by=None)


def launch(dataset: Dataset, base: Checkpoint, *, step_s: float = 0.0, **config: object) -> Run:
    values = presets_of("sft")["quick"] | {"weight_decay": step_s} | config
    return runs.launch(kind="sft", dataset=dataset, base=base, config=values, by=None)


def hold(run: Run, step: int) -> None:
    """Have the trainer wait after `step`, so that a test finds it alive however slow it is."""
    directory = workdir.directory_of(run)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "hold").write_text(str(step))


def let_go(run: Run) -> None:
    (workdir.directory_of(run) / "hold").unlink()


@pytest.fixture
def supervising() -> Iterator[Callable[[Run], threading.Thread]]:
    """Supervise a run in a thread of its own, as the worker does."""
    threads: list[threading.Thread] = []

    def begin(run: Run) -> threading.Thread:
        def work() -> None:
            try:
                supervise.supervise(run.pk)
            finally:
                connection.close()

        thread = threading.Thread(target=work)
        threads.append(thread)
        thread.start()
        return thread

    yield begin
    for thread in threads:
        thread.join(WAIT_S)


def now(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


# -- the whole way -------------------------------------------------------------------------------


def test_a_run_ends_with_its_series_and_its_checkpoints_in_the_store(dataset, base):
    run = launch(dataset, base)
    supervise.supervise(run.pk)
    run = now(run)
    assert run.state == State.SUCCEEDED, run.error
    assert (run.step, run.total_steps, run.pid) == (8, 8, None)
    assert run.metrics["loss"] == 1 / 8
    assert [m.step for m in run.series.all()] == list(range(1, 9))
    assert run.rows == {
        "rows": 2, "sources": {"clicks": 2}, "left_out_total": 0, "left_out": []
    }  # fmt: skip
    assert "from step 0" in run.log
    checkpoints = list(run.checkpoints.order_by("step"))
    assert [c.version for c in checkpoints] == [f"{run.name}-step-4", f"{run.name}-step-8"]
    last = checkpoints[-1]
    assert (last.parent, last.metrics["loss"], last.manifest) == (base, 1 / 8, MANIFEST)
    store = open_store(settings.STORAGE_URL)
    assert store.get_object(f"checkpoints/{last.version}/weights") == b"w" * 8
    assert last.uri == store.uri(f"checkpoints/{last.version}")


def test_a_job_that_runs_twice_does_nothing_the_second_time(dataset, base):
    run = launch(dataset, base)
    supervise.supervise(run.pk)
    before = now(run)
    supervise.supervise(run.pk)
    after = now(run)
    assert (after.attempts, after.supervisor, after.finished_at) == (
        before.attempts, before.supervisor, before.finished_at
    )  # fmt: skip
    assert after.checkpoints.count() == 2


def test_only_one_of_two_claims_wins(dataset, base):
    run = launch(dataset, base)
    assert supervise.claim(run.pk)
    assert supervise.claim(run.pk) is None


def test_a_trainer_that_fails_leaves_its_reason_and_its_log(dataset, base):
    run = launch(dataset, base, learning_rate=0.5)
    supervise.supervise(run.pk)
    run = now(run)
    assert run.state == State.FAILED
    assert "the loss is nan" in run.error
    assert "from step 0" in run.error


def test_a_dataset_that_the_base_cannot_read_fails_before_the_first_step(dataset, base):
    base.manifest = {"dialect": "element"}
    base.save()
    run = launch(dataset, base)
    supervise.supervise(run.pk)
    run = now(run)
    assert run.state == State.FAILED
    assert "observation" in run.error
    assert run.attempts == 0


# -- cancelling and going on -----------------------------------------------------------------------


def test_cancelling_in_the_queue_is_immediate_and_an_ended_run_is_not_cancelled(dataset, base):
    run = runs.cancel(launch(dataset, base))
    assert run.state == State.CANCELLED
    supervise.supervise(run.pk)
    assert now(run).attempts == 0
    with pytest.raises(WrongState, match="cancelled already"):
        runs.cancel(run)


@pytest.mark.django_db(transaction=True)
def test_a_cancelled_run_has_a_checkpoint_and_goes_on_from_it(dataset, base, supervising, queued):
    run = launch(dataset, base, steps=30, save_every=0)
    hold(run, 5)
    thread = supervising(run)
    until(lambda: now(run).step == 5)
    runs.cancel(now(run))
    thread.join(WAIT_S)
    run = now(run)
    assert (run.state, run.step) == (State.CANCELLED, 5)
    assert [c.step for c in run.checkpoints.all()] == [5]

    let_go(run)
    runs.resume(run)
    assert queued[-1] == run.pk
    supervising(now(run)).join(WAIT_S)
    run = now(run)
    assert run.state == State.SUCCEEDED, run.error
    assert "from step 5" in run.log
    assert [m.step for m in run.series.all()] == list(range(1, 31))
    with pytest.raises(WrongState, match="succeeded"):
        runs.resume(run)


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_goes_down_puts_its_run_back_into_the_queue(dataset, base, supervising):
    run = launch(dataset, base, steps=30)
    hold(run, 3)
    thread = supervising(run)
    until(lambda: now(run).step == 3)
    supervise.shutting_down.set()
    try:
        thread.join(WAIT_S)
    finally:
        supervise.shutting_down.clear()
    run = now(run)
    assert (run.state, run.pid, run.supervisor) == (State.QUEUED, None, "")
    assert not process.held(workdir.directory_of(run))
    let_go(run)
    supervising(run).join(WAIT_S)
    assert now(run).state == State.SUCCEEDED


# -- dying ---------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_a_killed_trainer_is_named_and_its_run_goes_on_by_itself(
    dataset, base, supervising, queued
):
    run = launch(dataset, base, steps=12, save_every=2)
    hold(run, 5)
    thread = supervising(run)
    until(lambda: now(run).checkpoints.exists())
    os.killpg(now(run).pid, signal.SIGKILL)
    thread.join(WAIT_S)
    run = now(run)
    assert run.state == State.QUEUED
    assert "SIGKILL" in run.error
    queued.clear()
    assert supervise.find_lost() == 1 and queued == [run.pk]
    let_go(run)
    supervising(run).join(WAIT_S)
    run = now(run)
    assert (run.state, run.error) == (State.SUCCEEDED, "")
    assert "from step" in run.log.split("from step 0", 1)[1]
    assert [m.step for m in run.series.all()] == list(range(1, 13))


@pytest.mark.django_db(transaction=True)
def test_a_trainer_that_is_killed_again_and_again_fails(dataset, base, supervising, monkeypatch):
    monkeypatch.setattr(supervise, "MAX_ATTEMPTS", 1)
    run = launch(dataset, base, steps=12, save_every=2)
    hold(run, 5)
    thread = supervising(run)
    until(lambda: now(run).checkpoints.exists())
    os.killpg(now(run).pid, signal.SIGKILL)
    thread.join(WAIT_S)
    run = now(run)
    assert run.state == State.FAILED
    assert "SIGKILL" in run.error
    let_go(run)
    runs.resume(run)
    supervising(now(run)).join(WAIT_S)
    assert now(run).state == State.SUCCEEDED


def killed_supervisor(
    run: Run, environment: dict[str, str], trainers: str = "tests.training.standin"
) -> None:
    """Start a supervisor as a process of its own and kill it (not its trainer) in the middle."""
    code = (
        "import sys, django; django.setup(); from django.conf import settings; from pathlib import Path;"
        "settings.RUNS_DIR = Path(sys.argv[2]); settings.STORAGE_URL = sys.argv[3];"
        "from training.runs import supervise; supervise.TRAINERS = sys.argv[4];"
        "supervise.POLL_S = 0.05; supervise.supervise(int(sys.argv[1]))"
    )
    arguments = [str(run.pk), str(settings.RUNS_DIR), settings.STORAGE_URL, trainers]
    supervisor = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], env=environment, cwd=settings.BASE_DIR
    )
    try:
        until(lambda: now(run).step >= 1, deadline_s=120)
    finally:
        supervisor.kill()
        supervisor.wait()


def forget_heartbeat(run: Run) -> None:
    old = timezone.now() - supervise.STALE - dt.timedelta(seconds=1)
    Run.objects.filter(pk=run.pk).update(heartbeat_at=old)


@pytest.mark.django_db(transaction=True)
def test_the_trainer_of_a_dead_supervisor_is_adopted(
    dataset, base, child_environment, queued, supervising
):
    run = launch(dataset, base, steps=40, save_every=20)
    hold(run, 3)
    killed_supervisor(run, child_environment)
    pid = now(run).pid
    assert process.held(workdir.directory_of(run))
    assert supervise.find_lost() == 0  # its heartbeat is still young
    assert supervise.claim(run.pk) is None
    forget_heartbeat(run)
    queued.clear()
    assert supervise.find_lost() == 1
    assert queued == [run.pk]
    dead = now(run).supervisor
    thread = supervising(run)
    until(lambda: now(run).supervisor != dead)
    let_go(run)
    thread.join(WAIT_S)
    run = now(run)
    assert run.state == State.SUCCEEDED, run.error
    assert run.attempts == 1  # the same trainer, not a second one
    assert run.log.count("from step") == 1
    assert pid
    assert [m.step for m in run.series.all()] == list(range(1, 41))
    assert [c.step for c in run.checkpoints.order_by("step")] == [20, 40]


@pytest.mark.django_db(transaction=True)
def test_where_both_died_the_run_goes_on_from_its_last_checkpoint(dataset, base, child_environment):
    run = launch(dataset, base, steps=16, save_every=4)
    hold(run, 5)
    killed_supervisor(run, child_environment)
    until(lambda: workdir.finished_checkpoints(workdir.directory_of(run)))
    os.killpg(now(run).pid, signal.SIGKILL)
    until(lambda: not process.held(workdir.directory_of(run)))
    forget_heartbeat(run)
    let_go(run)
    supervise.supervise(run.pk)
    run = now(run)
    assert run.state == State.SUCCEEDED, run.error
    assert run.attempts == 2
    assert "from step 0" not in run.log.split("\n", 1)[1]
    assert [m.step for m in run.series.all()] == list(range(1, 17))


@pytest.mark.django_db(transaction=True)
def test_a_machine_that_never_saw_the_run_fetches_what_was_uploaded(
    dataset, base, supervising, tmp_path, settings
):
    run = launch(dataset, base, steps=10, save_every=3)
    hold(run, 4)
    thread = supervising(run)
    until(lambda: now(run).checkpoints.exists())
    runs.cancel(now(run))
    thread.join(WAIT_S)
    settings.RUNS_DIR = tmp_path / "another-machine"
    reached = now(run).checkpoints.order_by("-step").first().step
    runs.resume(now(run))
    supervising(now(run)).join(WAIT_S)
    run = now(run)
    assert run.state == State.SUCCEEDED, run.error
    assert f"from step {reached}" in run.log


@pytest.mark.django_db(transaction=True)
def test_killed_while_it_resumes_a_run_the_next_one_goes_on(
    dataset, base, supervising, monkeypatch
):
    run = launch(dataset, base)
    hold(run, 3)
    thread = supervising(run)
    until(lambda: now(run).step == 3)
    runs.cancel(now(run))
    thread.join(WAIT_S)
    runs.resume(now(run))

    def die(directory):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(supervise, "status_path", die)
        supervise.supervise(run.pk)
    forget_heartbeat(run)
    let_go(run)
    supervise.supervise(run.pk)
    assert now(run).state == State.SUCCEEDED, now(run).error


def test_a_machine_that_keeps_dying_is_given_up(dataset, base):
    run = launch(dataset, base)
    Run.objects.filter(pk=run.pk).update(state=State.RUNNING, attempts=supervise.MAX_ATTEMPTS)
    forget_heartbeat(run)
    supervise.supervise(run.pk)
    assert now(run).state == State.FAILED
    assert "died 3 times" in now(run).error


def test_who_finds_another_token_on_the_run_lets_go(dataset, base):
    run = launch(dataset, base)
    token = supervise.claim(run.pk)
    watch = supervise.Watch(run.pk, token)
    Run.objects.filter(pk=run.pk).update(supervisor="another")
    with pytest.raises(supervise.Lost):
        watch.write(log="mine")
    watch.fail("mine")
    assert (now(run).state, now(run).log) == (State.RUNNING, "")


@pytest.mark.django_db(transaction=True)
def test_a_store_that_is_away_for_a_while_costs_no_step(dataset, base, supervising, monkeypatch):
    from training.weights import checkpoints

    upload, refusals = checkpoints.upload, []

    def flaky(run, folder):
        if len(refusals) < 5:
            refusals.append(folder.name)
            raise StoreUnreachable("nobody answers")
        return upload(run, folder)

    monkeypatch.setattr(checkpoints, "upload", flaky)
    run = launch(dataset, base, step_s=0.05, save_every=2)
    supervising(run).join(WAIT_S)
    run = now(run)
    assert run.state == State.SUCCEEDED, run.error
    assert [c.step for c in run.checkpoints.order_by("step")] == [2, 4, 6, 8]
    assert len(refusals) == 5


def test_a_lost_message_of_a_queued_run_is_sent_again(dataset, base, queued):
    run = launch(dataset, base)
    queued.clear()
    assert supervise.find_lost() == 1
    assert supervise.find_lost() == 0  # not again within a minute
    assert queued == [run.pk]
