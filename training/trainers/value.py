"""Value pretraining: `python -m training.trainers.value RUN_DIR [--dry-run]`.

The critic of an RL run learns, before the run, what the run's start is worth: Monte-Carlo returns
(lambda 1) of episodes that one fixed policy has played, until value loss and explained variance on
held-out episodes have converged. VC-PPO (arXiv 2503.01491), VAPO (arXiv 2504.05118, section 4.1),
UI-TARS-2 (arXiv 2509.02544, section 2.5). Without it early values are biased, advantages push early
tokens down, and answers collapse to shortness.

The whole stream.jsonl is read, up to its end. What was held out never taught: groups (a task and its
seed) are split, not episodes. A checkpoint is written at each look that is the best so far, so the
newest checkpoint is the best one, and a resumed run goes on from it with the same bits.
"""

from __future__ import annotations

import dataclasses
import math
import os
import random
import time
from typing import Any

import torch
from torch import Tensor

from training.algos.gae import monte_carlo_returns
from training.algos.value import explained_variance, value_loss
from training.data.stream_rows import TokenEpisode
from training.runs.rundir import RunDir, Status
from training.trainers import states
from training.trainers.critic import CriticLearner, open_critic
from training.trainers.job import Refused, Stop, main
from training.trainers.learner import Learner, accelerator
from training.trainers.passes import learn, measure
from training.trainers.returns import Rewarded, shaped, token_rewards
from training.trainers.token_rows import Layout, TokenRow, lay_out, sampled_values, shuffled
from training.trainers.updates import Pool

Batch = dict[str, Tensor]
FEWEST = 8
LOOK_S = 0.2


@dataclasses.dataclass(frozen=True, slots=True)
class Config(Rewarded):
    """What a run is trained with; `actor` is the sha256 of the checkpoint that played."""

    actor: str = ""
    steps: int = 50
    batch_size: int = 32
    held_out: float = 0.2
    evaluate_every: int = 5
    patience: int = 5
    min_gain: float = 0.01


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """Episodes as tokens with their returns, (tokens,) each; `held` are the held-out episodes."""

    layout: Layout
    returns: Tensor
    learnt: list[int]
    held: list[int]

    def rows(self, episodes: list[int]) -> list[TokenRow]:
        chosen = set(episodes)
        return [row for row in self.layout.rows if row.episode in chosen]

    def mask(self, episodes: list[int]) -> Tensor:
        """Return (tokens,): True at the tokens of these episodes."""
        found = torch.zeros(self.layout.tokens, dtype=torch.bool)
        for row in self.rows(episodes):
            found[row.start : row.stop] = True
        return found


def played(run: RunDir, stop: Stop) -> list[TokenEpisode] | None:
    """Return the whole stream once it has ended; None where `stop` was asked before."""
    pool, said = Pool(run.path, ()), 0.0
    while True:
        pool.look()
        if pool.ended:
            return list(pool.waiting.values())
        if stop.asked:
            return None
        if time.monotonic() - said > 2 and os.environ.get("RANK", "0") == "0":
            said = time.monotonic()
            run.write_status(Status("running", pid=os.getpid()))
        time.sleep(LOOK_S)


def task_of(episodes: list[TokenEpisode], learner: Learner, config: Config) -> Task:
    """Return what is to be learnt; raises Refused where a critic can't be had from it."""
    versions = sorted({step.version for episode in episodes for step in episode.steps})
    if len(versions) > 1:
        raise Refused(
            f"the episodes were played by {len(versions)} policies ({', '.join(versions[:3])}): "
            "values are those of one fixed policy; roll out again without training in between"
        )
    if len(episodes) < FEWEST:
        raise Refused(
            f"{len(episodes)} episodes are too few to learn from and to hold out: "
            f"at least {FEWEST} are needed, some hundreds are good"
        )
    layout = lay_out(episodes, learner.loaded, config)
    if not layout.rows:
        raise Refused(f"every step has more than {config.max_tokens} tokens: raise max_tokens")
    rewards = layout.by_episode(token_rewards(layout, shaped(layout, config)))
    returns = layout.flat(monte_carlo_returns(rewards, layout.mask(), gamma=config.gamma))
    if float(returns.max() - returns.min()) < 1e-6:
        raise Refused(
            f"every return is {float(returns[0]):g}: there is nothing to explain; add tasks that "
            "the policy sometimes solves and sometimes fails"
        )
    learnt, held = split(episodes, layout, returns, config)
    return Task(layout, returns, learnt, held)


def split(
    episodes: list[TokenEpisode], layout: Layout, returns: Tensor, config: Config
) -> tuple[list[int], list[int]]:
    """Return the places of the episodes that teach, and of those held out; whole groups each.

    Of the splits that follow from the seed the first one is taken with differing returns on both
    sides. Raises Refused where there is none.
    """
    groups: dict[str, list[int]] = {}
    has_rows = {row.episode for row in layout.rows}
    for place, episode in enumerate(episodes):
        if place in has_rows:
            groups.setdefault(episode.group, []).append(place)
    wanted = max(1, round(config.held_out * len(has_rows)))

    def differ(places: list[int]) -> bool:
        own = Task(layout, returns, [], []).mask(places)
        return bool(own.any()) and float(returns[own].max() - returns[own].min()) > 1e-6

    for attempt in range(100):
        order = sorted(groups)
        random.Random(f"{config.seed}/held-out/{attempt}").shuffle(order)
        held: list[int] = []
        while order and len(held) < wanted:
            held += groups[order.pop()]
        learnt = sorted(place for name in order for place in groups[name])
        if differ(held) and differ(learnt):
            return learnt, sorted(held)
    raise Refused(
        f"{len(groups)} pairs of task and seed can't be split so that both sides have episodes of "
        "different return: play more tasks, or more seeds of them"
    )


def look(task: Task, learner: Learner, config: Config) -> dict[str, float]:
    """Return how well the critic does on what was held out."""
    tokens = task.layout.tokens
    values = measure(learner, task.rows(task.held), tokens, config, sampled_values)
    mask = task.mask(task.held)
    loss, _ = value_loss(values, values, task.returns, mask, clip=None)
    return {
        "held_out_value_loss": float(loss / mask.sum()),
        "held_out_explained_variance": explained_variance(values, task.returns, mask),
    }


def step_once(task: Task, learner: Learner, config: Config, step: int) -> dict[str, float]:
    """Make one optimiser step (from 1) on a batch of episodes; returns its figures."""
    parts = math.ceil(len(task.learnt) / config.batch_size)
    epoch, turn = divmod(step - 1, parts)
    batches = shuffled(len(task.learnt), parts, f"{config.seed}/{epoch}")
    chosen = [task.learnt[n] for n in batches[turn % len(batches)]]
    rows = task.rows(chosen)
    returns = task.returns[task.mask(chosen)]
    count = len(returns)

    def loss(model: Any, batch: Batch, sampled: Tensor, at: Tensor) -> tuple[Tensor, Batch]:
        values = sampled_values(model, batch, sampled)
        target = task.returns[at].to(values.device)
        summed, _ = value_loss(values, values, target, torch.ones_like(target), clip=None)
        error = (target - values).detach().sum()
        return summed / count, {"loss": summed / count, "error": error / count}

    sums = learn(learner, rows, config, loss)
    if not math.isfinite(sums["loss"]):
        raise FloatingPointError(
            f"the loss of step {step} is {sums['loss']}: lower the learning rate"
        )
    rate = config.learning_rate * min(1.0, step / max(1, config.warmup_steps))
    norm = learner.step(rate)
    spread = float(returns.double().var(correction=0))
    left = 2 * sums["loss"] - sums["error"] ** 2  # Var(R - V), from sums of all processes
    return {
        "loss": sums["loss"], "value_loss": sums["loss"], "lr": rate, "grad_norm": norm,
        "explained_variance": 1 - left / spread if spread > 0 else 0.0,
        "tokens": sum(row.length for row in rows),
    }  # fmt: skip


def train(run: RunDir, config: Config, stop: Stop) -> Status:
    """Train until it has converged, or to the last step, or until `stop` is asked."""
    episodes = played(run, stop)
    if episodes is None:
        return Status("cancelled", 0, config.steps)
    loaded, manifest = open_critic(config)
    manifest = dataclasses.replace(manifest, actor=config.actor)
    learner = CriticLearner(loaded, manifest, config, accelerator())
    task = task_of(episodes, learner, config)
    first, best, reference, flat = 0, -math.inf, -math.inf, 0
    if state := states.newest(run):
        learner.restore(state["learner"])
        first, best = int(state["step"]), float(state["best"])
        reference, flat = float(state["reference"]), int(state["flat"])
    writes = learner.accelerator.is_main_process
    if writes:
        print(
            f"{len(task.learnt)} episodes teach, {len(task.held)} are held out; "
            f"{task.layout.tokens:,} tokens, {learner.size:,} weights trained"
        )
        run.cut_metrics(first)
        run.write_status(Status("running", first, config.steps, os.getpid()))
    begun, step, saved, converged = time.monotonic(), first, first, False
    converged = flat >= config.patience
    while step < config.steps and not converged:
        step += 1
        started = time.monotonic()
        figures = step_once(task, learner, config, step)
        halted = _told(learner, stop)
        now = time.monotonic()
        figures["tokens_per_s"] = figures.pop("tokens") / (now - started)
        figures["eta_s"] = (now - begun) / (step - first) * (config.steps - step)
        if step % config.evaluate_every == 0 or step == config.steps or (halted and not saved):
            figures |= look(task, learner, config)
            seen = figures["held_out_explained_variance"]
            # Small gains add up: what counts is the gain over the last one that counted.
            gained = seen >= reference + config.min_gain
            reference, flat = (seen, 0) if gained else (reference, flat + 1)
            converged = flat >= config.patience
            if seen > best or not saved:
                best, saved = seen, step
                state = {
                    "learner": learner.state(), "best": best, "reference": reference, "flat": flat,
                }  # fmt: skip
                if writes:
                    states.save(run, step, state)
                learner.manifest = dataclasses.replace(manifest, explained_variance=seen)
                learner.write(
                    run.checkpoint(step), f"{config.version or run.path.name}-step-{step}"
                )
        if writes:
            run.append_metrics({"step": step, "time": time.time(), **_finite(figures)})
            newest = f"checkpoints/step-{saved}" if saved else ""
            run.write_status(Status("running", step, config.steps, os.getpid(), checkpoint=newest))
        if halted and step < config.steps and not converged:
            return Status("cancelled", step, config.steps, checkpoint=f"checkpoints/step-{saved}")
    if writes:
        why = "it has converged" if converged else "that was the last step"
        print(f"best explained variance on held-out episodes {best:.3f} at step {saved}; {why}")
    return Status("succeeded", step, config.steps, checkpoint=f"checkpoints/step-{saved}")


def show(run: RunDir, config: Config) -> None:
    """Print what would teach, and one episode with the return of each step."""
    episodes = list(_there(run))
    loaded, manifest = open_critic(config)
    task = task_of(episodes, CriticLearner(loaded, manifest, config, accelerator()), config)
    print(f"{len(task.learnt)} episodes teach, {len(task.held)} are held out")
    decode = loaded.processor.tokenizer.decode
    for row in task.rows(task.learnt[:1]):
        prompt = decode(row.step.prompt_ids, skip_special_tokens=False)
        said = decode(row.step.output_ids, skip_special_tokens=False)
        first, last = float(task.returns[row.start]), float(task.returns[row.stop - 1])
        print(f"row {row.id}: return {first:.3f} at its first token, {last:.3f} at its last")
        print(f"\033[90m{prompt}\033[0m\033[32m{said}\033[0m")


def _there(run: RunDir) -> list[TokenEpisode]:
    pool = Pool(run.path, ())
    pool.look()
    return list(pool.waiting.values())


def _told(learner: Learner, stop: Stop) -> bool:
    """Whether any process was asked to stop: all of them end at the same step."""
    word = torch.tensor(float(stop.asked), device=learner.accelerator.device)
    return float(learner.accelerator.reduce(word, "sum")) > 0


def _finite(figures: dict[str, float]) -> dict[str, float]:
    """Return the figures that JSON can hold, rounded."""
    return {name: round(value, 6) for name, value in figures.items() if math.isfinite(value)}


if __name__ == "__main__":
    raise SystemExit(main("value", Config, train, show))
