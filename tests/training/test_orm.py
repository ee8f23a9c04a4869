"""Teaching a model to judge: balanced, held out by task and seed, and by RL on its own verdicts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from agent.rewards.generative import WORDS
from agent.rewards.reply import read
from training.data.verdict_rows import NoVerdict, other, row_of
from training.runs.rundir import RunDir
from training.trainers import job, orm
from training.trainers.learner import Learner, accelerator, open_model
from training.trainers.rows import kept
from trajectory import Actor, Click, Element, Observation, Outcome, Step, Trajectory

pytest_plugins = ["tests.tiny"]
pytestmark = pytest.mark.timeout(300)

CONFIG = {
    "steps": 4, "batch_size": 4, "learning_rate": 0.003, "warmup_steps": 0, "lora_rank": 0,
    "save_every": 0, "threads": 1, "version": "judge", "held_out": 0.25, "look_every": 4,
}  # fmt: skip


@pytest.fixture(autouse=True)
def short_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    """An untrained model never ends a reply."""
    monkeypatch.setattr(orm, "MAX_REPLY", 4)


def trajectory(n: int, truth: int, *, outcome: Outcome = Outcome.FINISHED) -> Trajectory:
    seen = Observation("0" * 64, 160, 210, elements=(Element("button", "OK", (1, 1, 9, 9)),))
    step = Step(0, seen, "yes" if truth else "no", Click(3, 3), Actor.AGENT)
    return Trajectory(f"episode-{n}-1", "click", "Click OK.", (step,), outcome, reward=float(truth))


def record(n: int, truth: int) -> dict[str, object]:
    return row_of(trajectory(n, truth), truth=truth, kind="elements", group=f"click#{n // 2}")


def records(successes: int, failures: int) -> list[dict[str, object]]:
    return [record(n, int(n < successes)) for n in range(successes + failures)]


def make(path: Path, base: Path, rows: list[dict[str, object]], **config: object) -> RunDir:
    return RunDir.create(
        path, config={**CONFIG, "base": str(base), **config},
        lines=[json.dumps(row) + "\n" for row in rows],
    )  # fmt: skip


def orm_main(run: RunDir, *more: str) -> int:
    return job.main("orm", orm.Config, orm.train, orm.show, [str(run.path), *more])


def metrics(run: RunDir) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]


def test_a_row_asks_as_a_judge_is_asked_and_its_answer_can_be_read():
    for truth, word in enumerate(("failure", "success")):
        row = record(1, truth)
        reply = read(row["target"], token=row["token"], words=WORDS, steps=row["steps"])
        assert reply.word == word
        assert read(other(row), token=row["token"], words=WORDS, steps=1).word != word
        assert orm.reward(row["target"], row) == 1.0
        assert orm.reward(other(row), row) == orm.reward("Success!", row) == 0.0


def test_what_can_not_be_judged_is_no_row():
    broken = trajectory(1, 0, outcome=Outcome.ENV_FAILURE)
    with pytest.raises(NoVerdict, match="environment"):
        row_of(broken, truth=0, kind="elements", group="g")
    with pytest.raises(NoVerdict, match="screenshot"):
        row_of(trajectory(1, 1), truth=1, kind="screenshot", group="g")


def test_it_learns_looks_at_held_out_episodes_and_goes_on_with_rl(tmp_path, tiny_llama):
    run = make(tmp_path / "run", tiny_llama, records(8, 8), rl_steps=2, rl_group=2)
    assert orm_main(run) == 0
    said = metrics(run)
    assert [line["step"] for line in said] == [1, 2, 3, 4, 5, 6]
    assert said[3]["loss"] < said[0]["loss"]
    assert {"balanced_accuracy", "f1", "precision", "recall"} <= said[3].keys()
    assert "reward" in said[4] and "reward" not in said[3]
    status = run.status()
    assert (status.state, status.step, status.total_steps) == ("succeeded", 6, 6)
    assert run.steps() == [4, 6]


def test_a_run_stopped_in_its_rl_part_goes_on_there(tmp_path, tiny_llama, monkeypatch):
    whole = make(tmp_path / "whole", tiny_llama, records(8, 8), rl_steps=2, rl_group=2)
    assert orm_main(whole) == 0
    parts = make(tmp_path / "parts", tiny_llama, records(8, 8), rl_steps=2, rl_group=2)
    stop = job.Stop()
    answer = orm.sampled

    def stopping(*asked):
        stop.asked = True
        return answer(*asked)

    monkeypatch.setattr(orm, "sampled", stopping)
    status = orm.train(parts, orm.Config.read(parts.config()), stop)
    assert (status.state, status.step) == ("cancelled", 5)
    monkeypatch.undo()
    assert orm_main(parts) == 0
    kept = ("step", "loss", "lr")
    assert [[line[k] for k in kept] for line in metrics(whole)] == [
        [line[k] for k in kept] for line in metrics(parts)
    ]


def test_truths_weigh_the_same_and_groups_stay_together(tmp_path, tiny_llama):
    run = make(tmp_path / "run", tiny_llama, records(6, 18))
    config = orm.Config.read(run.config())
    loaded, manifest = open_model(config)
    rows, held = orm.read_split(run, kept(run.rows(), loaded, config), config)
    assert not {r.record["group"] for r in rows} & {r.record["group"] for r in held}
    weights = [sum(r.weight for r in rows if r.record["truth"] == truth) for truth in (0, 1)]
    assert weights[0] == pytest.approx(weights[1]) == pytest.approx(len(rows) / 2)
    learner = Learner(loaded, manifest, config, accelerator())
    score = orm.scores(learner, rows[:1], config)[0]
    alone = plain_score(loaded, rows[0])
    assert score == pytest.approx(alone, rel=1e-4)


def plain_score(loaded, row) -> float:
    """P(success) against P(failure) by two plain forward passes."""
    total = {}
    for text in (row.record["target"], other(row.record)):
        target = loaded.processor.target_ids(text)
        with torch.no_grad():
            logits = loaded.model(torch.tensor([row.prompt.ids + target])).logits[0]
        said = logits[len(row.prompt.ids) - 1 : -1].log_softmax(-1)
        total[text.rpartition(" ")[2]] = float(said.gather(1, torch.tensor(target)[:, None]).sum())
    return 1 / (1 + 2.718281828459045 ** (total["failure"] - total["success"]))


def test_too_few_of_one_truth_are_refused(tmp_path, tiny_llama):
    run = make(tmp_path / "run", tiny_llama, records(2, 12))
    assert orm_main(run) == 1
    assert "successes to learn from, at least 4 are needed" in run.status().error


def test_measures_are_those_of_the_confusion_matrix():
    truths = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    found = orm.measures(truths, [0.9, 0.8, 0.7, 0.2, 0.6, 0.9, 0.1, 0.2, 0.3, 0.4])
    wanted = {
        "accuracy": 7 / 10,
        "balanced_accuracy": (3 / 4 + 4 / 6) / 2,
        "precision": 3 / 5,
        "recall": 3 / 4,
        "f1": 2 / 3,
    }
    assert found == pytest.approx(wanted)
    assert orm.measures([0, 0], [0.1, 0.2])["f1"] == 0.0
