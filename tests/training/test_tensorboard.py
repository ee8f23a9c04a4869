"""Event files, read back by TensorBoard's own reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.urls import reverse

from training.models import Metric, Run
from training.runs.rundir import RunDir
from training.runs.series import HEADLINE, PLOTS, SERIES, common, described, keys_of
from training.runs.tensorboard import Board, crc32c, event_file

accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


def read(path: Path):
    events = accumulator.EventAccumulator(str(path))
    events.Reload()
    return {
        tag: [(one.step, one.wall_time, one.value) for one in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


def test_the_checksum_is_that_of_the_standard():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, appendix B.4


def test_what_a_trainer_says_is_read_back(tmp_path):
    board = Board(tmp_path)
    board.add(1, {"step": 1, "loss": 0.5, "lr": 0.25, "version": "run-step-1", "time": 100.0})
    board.add(300, {"loss": -2, "bad": float("nan"), "huge": 1e300, "time": 101.5})
    found = read(tmp_path / "tensorboard")
    assert found["loss"] == [(1, 100.0, 0.5), (300, 101.5, -2.0)]
    assert found["lr"] == [(1, 100.0, 0.25)]
    assert set(found) == {"loss", "lr", "huge"}


def test_a_resumed_trainer_takes_back_what_it_says_again(tmp_path):
    first = Board(tmp_path)
    for step in (1, 2, 3, 4):
        first.add(step, {"loss": step, "time": 100.0 + step})
    again = Board(tmp_path)
    for step in (3, 4):
        again.add(step, {"loss": 10 * step, "time": 200.0 + step})
    assert len(list((tmp_path / "tensorboard").iterdir())) == 2
    loss = read(tmp_path / "tensorboard")["loss"]
    assert [(step, value) for step, _, value in loss] == [(1, 1), (2, 2), (3, 30), (4, 40)]


def test_a_trainer_that_writes_its_metrics_writes_events_too(tmp_path):
    run = RunDir.create(tmp_path / "r", config={"steps": 1})
    run.append_metrics({"step": 1, "loss": 0.5, "time": 7.0})
    assert read(run.path / "tensorboard") == {"loss": [(1, 7.0, 0.5)]}


def test_a_board_that_never_spoke_leaves_nothing(tmp_path):
    Board(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.django_db
def test_a_run_is_downloaded_as_an_event_file(client, admin_user, tmp_path):
    client.force_login(admin_user)
    run = Run.objects.create(name="r", kind="ppo")
    for step in (1, 2):
        values = {"step": step, "reward": step / 2, "time": 50.0 + step}
        Metric.objects.create(run=run, step=step, values=values)
    answer = client.get(reverse("training:events", args=[run.pk]))
    assert "tfevents.r" in answer["Content-Disposition"]
    (tmp_path / "events.out.tfevents.r").write_bytes(answer.content)
    assert read(tmp_path) == {"reward": [(1, 51.0, 0.5), (2, 52.0, 1.0)]}
    assert event_file([])


def test_every_series_of_a_plot_has_a_name():
    for kind in Run.Kind.values:
        assert set(keys_of(kind)) <= SERIES.keys()
        assert set(HEADLINE[kind]) <= SERIES.keys()
        assert len({plot.key for plot in PLOTS[kind]}) == len(PLOTS[kind])
        assert all(one["series"] for one in described(kind))
    assert [one.key for one in common(["sft", "ct"])] == keys_of("sft")
    assert common([]) == []
