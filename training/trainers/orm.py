"""Teach a model to judge episodes: `python -m training.trainers.orm RUN_DIR [--dry-run]`.

An outcome reward model in the sense of UI-TARS-2 (arXiv 2509.02544): the policy itself, asked about a
whole episode (agent.rewards.question), strengthened by labelled episodes and then by single-turn RL.

1. SFT on the true verdicts (training.data.verdict_rows), successes and failures weighing the same in all.
2. `rl_steps` of REINFORCE: the model answers each question `rl_group` times, a reply that can be read
   and is right earns 1, any other 0; the baseline is the mean of the group's others (RLOO, arXiv
   2402.14740). It learns the form and the judgement from what it says itself.

Held-out episodes, never of a task and seed that was learnt from, tell how good it is. Its score of an
episode is P(success) / (P(success) + P(failure)) at the verdict. The checkpoint is a policy's: deploy
it, then calibrate it as a reward model before it may gate anything.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from agent.rewards.generative import REWARDS
from agent.rewards.generative import WORDS as VERDICTS
from agent.rewards.reply import Unreadable, read
from agent.serving.processor import Encoded
from training.algos.group import leave_one_out
from training.data.verdict_rows import other
from training.runs.rundir import RunDir, Status
from training.trainers import states
from training.trainers.batches import plan
from training.trainers.job import Refused, Stop, main
from training.trainers.learner import Learner, accelerator, open_model
from training.trainers.loop import Fit, backward, fit, total_steps
from training.trainers.rows import Row, collate, coloured, encode, kept
from training.trainers.settings import Settings
from training.trainers.sft import summed_loss

FEWEST = 4  # of each truth, to learn from
MAX_REPLY = 128  # tokens of a sampled reply


@dataclasses.dataclass(frozen=True, slots=True)
class Config(Settings):
    """What a run is trained with; see training.presets.orm."""

    epochs: float = 3.0
    steps: int = 0
    batch_size: int = 8
    learning_rate: float = 1e-4
    max_tokens: int = 8192
    balance: str = "yes"
    held_out: float = 0.2
    rl_steps: int = 0
    rl_group: int = 4
    look_every: int = 10


# -- data --------------------------------------------------------------------------------------


def read_split(run: RunDir, learner_rows: list[Row], config: Config) -> tuple[list[Row], list[Row]]:
    """Return rows to learn from and rows held out, apart by task and seed; raises Refused."""
    held = [row for row in learner_rows if _place(row) < config.held_out]
    rows = [row for row in learner_rows if _place(row) >= config.held_out]
    for truth, name in ((1, "successes"), (0, "failures")):
        have = sum(int(row.record["truth"]) == truth for row in rows)
        if have < FEWEST:
            raise Refused(
                f"{run.data} has {have} {name} to learn from, at least {FEWEST} are needed: play "
                "more episodes of tasks that a program verifies"
            )
    if config.balance == "yes":
        successes = sum(int(row.record["truth"]) for row in rows)
        shares = (len(rows) / (2 * (len(rows) - successes)), len(rows) / (2 * successes))
        for row in rows:
            row.weight = shares[int(row.record["truth"])]
    return rows, held


def _place(row: Row) -> float:
    """Return a number from 0 to 1 that is the same for all episodes of a task and seed."""
    digest = hashlib.sha256(str(row.record["group"]).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


# -- how good it is ----------------------------------------------------------------------------


@torch.no_grad()
def scores(learner: Learner, rows: Sequence[Row], config: Config) -> list[float]:
    """Return P(success) / (P(success) + P(failure)) of each episode, given the rest of the reply.

    Both replies differ in their last word alone, so the difference of their log-probabilities is
    that of the verdicts.
    """
    found = []
    for row in rows:
        target = learner.loaded.processor.target_ids(other(row.record))
        wrong = dataclasses.replace(row, target=target, weight=1.0)
        pair = [dataclasses.replace(row, weight=1.0), wrong]
        right, opposite = (
            -float(summed_loss(learner.model, _on(learner, [one], config))) for one in pair
        )
        margin = right - opposite if int(row.record["truth"]) else opposite - right
        found.append(1 / (1 + math.exp(-max(min(margin, 50.0), -50.0))))
    return found


def measures(truths: Sequence[int], found: Sequence[float]) -> dict[str, float]:
    """Return accuracy, balanced accuracy, and precision, recall and F1 of success, at score 1/2."""
    said = [score > 0.5 for score in found]
    cells = {
        (truth, word): sum(t == truth and s == word for t, s in zip(truths, said, strict=True))
        for truth in (0, 1)
        for word in (False, True)
    }
    hit, miss, alarm, quiet = cells[1, True], cells[1, False], cells[0, True], cells[0, False]
    precision = hit / (hit + alarm) if hit + alarm else 0.0
    recall = hit / (hit + miss) if hit + miss else 0.0
    specificity = quiet / (quiet + alarm) if quiet + alarm else 0.0
    both = precision + recall
    return {
        "accuracy": (hit + quiet) / len(truths),
        "balanced_accuracy": (recall + specificity) / 2,
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / both if both else 0.0,
    }


def looker(
    learner: Learner, held: Sequence[Row], config: Config, last: int
) -> Callable[[int], Any]:
    """Return what looks at the held-out rows each `look_every` steps and at the `last` one."""

    def look(step: int) -> dict[str, float]:
        if not held or (step % config.look_every and step != last):
            return {}
        learner.model.eval()
        found = scores(learner, held, config)
        learner.model.train()
        return measures([int(row.record["truth"]) for row in held], found)

    return look


# -- single-turn RL ----------------------------------------------------------------------------


@torch.no_grad()
def sampled(learner: Learner, row: Row, config: Config, seed: int) -> list[tuple[Row, float]]:
    """Return `rl_group` replies of the model to one question, each with its reward."""
    processor = learner.loaded.processor
    prompt = encode(row.record, learner.loaded, config.blobs).prompt
    device = learner.accelerator.device
    torch.manual_seed(seed)
    result = learner.accelerator.unwrap_model(learner.model).generate(
        input_ids=torch.tensor([prompt.ids], device=device),
        attention_mask=torch.ones((1, len(prompt.ids)), dtype=torch.long, device=device),
        **{name: tensor.to(device) for name, tensor in prompt.extra.items()},
        do_sample=True, temperature=1.0, top_p=1.0, top_k=0, use_cache=True,
        num_return_sequences=config.rl_group, max_new_tokens=MAX_REPLY,
        eos_token_id=processor.eos_ids, pad_token_id=processor.pad_id,
    )  # fmt: skip
    replies = []
    for ids in result[:, len(prompt.ids) :].tolist():
        ends = [at for at, token in enumerate(ids) if token in processor.eos_ids]
        said = ids[: ends[0] + 1] if ends else ids
        reply = dataclasses.replace(
            row, prompt=Encoded(prompt.ids), target=said, start=len(prompt.ids), weight=0.0
        )
        replies.append((reply, reward(processor.decode(said), row.record)))
    return replies


def reward(said: str, record: Any) -> float:
    """Return 1.0 for a reply in the judges' form with the true verdict, else 0.0."""
    try:
        reply = read(said, token=record["token"], words=VERDICTS, steps=record["steps"])
    except Unreadable:
        return 0.0
    return float(REWARDS[reply.word] == int(record["truth"]))


def reinforce(
    run: RunDir, config: Config, stop: Stop, learner: Learner, rows: list[Row], held: list[Row],
    begun: Status,
) -> Status:  # fmt: skip
    """Go on from the end of SFT with single-turn RL; returns what became of it."""
    total, first = begun.total_steps + config.rl_steps, begun.step
    look = looker(learner, held, config, total)
    batches = plan(rows, config.batch_size, mix={}, seed=config.seed + 1,
                   first=first - begun.total_steps)  # fmt: skip
    step, started = first, time.monotonic()
    for step in range(first + 1, total + 1):
        asked = [rows[n] for n in next(batches)]
        told = [
            sampled(learner, row, config, config.seed * 1_000_003 + step * 1009 + at)
            for at, row in enumerate(asked)
        ]
        earned = torch.tensor([r for group in told for _, r in group], dtype=torch.float64)
        groups = [at for at, group in enumerate(told) for _ in group]
        replies = [reply for group in told for reply, _ in group]
        for reply, advantage in zip(replies, leave_one_out(earned, groups).tolist(), strict=True):
            reply.weight = advantage
        count = sum(reply.learnt for reply in replies)
        # Weights that are advantages make of the cross-entropy the loss of REINFORCE.
        loss = backward(learner, replies, config, summed_loss, 1 / count)
        norm = learner.step(config.learning_rate)
        run.append_metrics({
            "step": step, "loss": round(float(loss), 6), "lr": config.learning_rate,
            "grad_norm": round(norm, 6), "reward": float(earned.mean()),
            "eta_s": round((time.monotonic() - started) / (step - first) * (total - step), 1),
            "time": time.time(), **look(step),
        })  # fmt: skip
        last = step == total or stop.asked
        if last or (config.save_every and step % config.save_every == 0):
            keep(run, config, learner, step, begun.total_steps)
        newest = f"checkpoints/step-{run.steps()[-1]}"
        run.write_status(Status("running", step, total, os.getpid(), checkpoint=newest))
        if last:
            break
    newest = f"checkpoints/step-{run.steps()[-1]}"
    return Status("succeeded" if step >= total else "cancelled", step, total, checkpoint=newest)


def keep(run: RunDir, config: Config, learner: Learner, step: int, sft_steps: int) -> None:
    states.save(run, step, {"learner": learner.state(), "total_steps": sft_steps})
    learner.write(run.checkpoint(step), f"{config.version or run.path.name}-step-{step}")


# -- the run -----------------------------------------------------------------------------------


def train(run: RunDir, config: Config, stop: Stop) -> Status:
    """Train to the end, or until `stop` is asked; returns what became of it."""
    loaded, manifest = open_model(config)
    rows, held = read_split(run, kept(run.rows(), loaded, config), config)
    learner = Learner(loaded, manifest, config, accelerator())
    if config.rl_steps and learner.accelerator.num_processes > 1:
        raise Refused("single-turn RL runs in one process: set rl_steps to 0 or processes to 1")
    steps = total_steps(rows, config.batch_size, steps=config.steps, epochs=config.epochs, mix={})
    done = run.steps()[-1] if run.steps() else 0
    work = Fit(
        rows, config.batch_size, steps, summed_loss, look=looker(learner, held, config, steps)
    )
    status = fit(run, config, stop, learner, work)
    if status.state != "succeeded" or not config.rl_steps:
        return status
    begun = dataclasses.replace(status, step=max(done, steps), total_steps=steps)
    return reinforce(run, config, stop, learner, rows, held, begun)


def show(run: RunDir, config: Config) -> None:
    """Print the first row as the model reads it, and what the run would be."""
    loaded, _ = open_model(config)
    rows, held = read_split(run, kept(run.rows(), loaded, config), config)
    print(f"row {rows[0].id}: {rows[0].start} tokens without loss, {rows[0].learnt} with")
    print(coloured(rows[0], loaded))
    truths = [int(row.record["truth"]) for row in rows]
    print(f"{len(rows)} episodes ({sum(truths)} successes) to learn from, {len(held)} held out")


def _on(learner: Learner, rows: list[Row], config: Config) -> dict[str, torch.Tensor]:
    batch = collate(rows, learner.loaded, config.blobs)
    return {key: tensor.to(learner.accelerator.device) for key, tensor in batch.items()}


if __name__ == "__main__":
    raise SystemExit(main("orm", Config, train, show))
