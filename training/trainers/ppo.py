"""Reinforcement learning: `python -m training.trainers.ppo RUN_DIR [--dry-run]`.

PPO as UI-TARS-2 does it (arXiv 2509.02544, section 2.5), from a stream of episodes: as soon as a
batch is there the policy is updated, its new weights are served, and episodes that were under way
go on under them. One update, top to bottom, is `update` below:

1. log-probabilities of what was sampled under the weights at its start (pi_prox), values, and the
   log-probabilities of the run's start where a KL penalty is asked for;
2. rewards: outcome, format, length, KL, each on the last token of its step;
3. advantages: GAE over the policy tokens of all steps of an episode joined, with the length-adaptive
   lambda of the policy and lambda 1 for the critic (decoupled GAE); or by comparison in the group;
4. passes over mini-batches: the critic learns returns; the policy learns by the token-level loss with
   clip-higher, corrected for stale samples, plus the LM loss on what succeeded.

All sums are divided by token counts of the whole mini-batch, so neither micro-batches nor processes
change the result. Formulas with their sources are in training.algos.

A step that is staler than `staleness` gets no loss, and is counted. Which episodes an update takes is
written down before a weight moves (training.trainers.updates); a killed run repeats the updates after
its newest state with the same episodes, and on a CPU with the same bits.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from agent.serving.checkpoint import find, load
from training.algos import gae, group
from training.algos.masked import masked_mean, masked_whiten
from training.algos.policy import (
    behaviour_weights,
    entropy,
    mismatch_kl,
    policy_loss,
    positive_lm_loss,
    token_logprobs,
)
from training.algos.shaping import kl_reward
from training.algos.value import explained_variance, value_loss
from training.data.stream_rows import TokenEpisode
from training.runs.rundir import RunDir, Status
from training.trainers.critic import CriticLearner, gate, open_critic
from training.trainers.job import Refused, Stop, main
from training.trainers.learner import Learner, accelerator, open_model
from training.trainers.passes import learn, measure
from training.trainers.returns import SUCCESS, Rewarded, shaped, token_rewards
from training.trainers.streamed import Pace, Streamed
from training.trainers.token_rows import (
    Layout,
    TokenRow,
    lay_out,
    places,
    sampled_logits,
    sampled_values,
    shuffled,
    thought_tokens,
)
from training.trainers.updates import Pool

Batch = dict[str, Tensor]


@dataclasses.dataclass(frozen=True, slots=True)
class Config(Rewarded):
    """What a run is trained with; `actor` is the sha256 of `base`, `critic` its critic or ""."""

    actor: str = ""
    critic: str = ""
    updates: int = 50
    batch: int = 64
    group: int = 4
    learning_rate: float = 1e-5
    critic_learning_rate: float = 2e-5
    advantage: str = "gae"
    minibatches: int = 1
    ppo_epochs: int = 1
    critic_updates: int = 1
    clip_low: float = 0.2
    clip_high: float = 0.28
    dual_clip: float = 3.0
    value_clip: float = 0.0
    lambda_policy: float = 0.0
    alpha: float = 0.05
    lambda_critic: float = 1.0
    whiten: str = "yes"
    positive_lm: float = 0.1
    entropy: float = 0.0
    kl: float = 0.0
    staleness: int = 4
    ratio_cap: float = 2.0
    min_explained_variance: float = 0.1
    any_critic: str = "no"
    warmup_steps: int = 2
    save_every: int = 5

    @property
    def compares(self) -> bool:
        """Whether advantages come from the group instead of a critic."""
        return self.advantage != "gae"


@dataclasses.dataclass(slots=True)
class Models:
    """Who learns, and the frozen start where it is a model of its own."""

    policy: Learner
    critic: Learner | None
    start: Any = None


@dataclasses.dataclass(frozen=True, slots=True)
class Numbers:
    """What is known of each sampled token of a batch: flat vectors (tokens,) on the CPU, fp32."""

    layout: Layout
    behave: Tensor
    """log pi of the policy that sampled it."""
    prox: Tensor
    """log pi at the start of the update."""
    values: Tensor
    """V at the start of the update; 0 without a critic."""
    rewards: Tensor
    advantages: Tensor
    returns: Tensor
    learnt: Tensor
    """bool: not too stale."""
    positive: Tensor
    """bool: of an episode that succeeded."""
    staleness: Tensor
    """Updates between the weights that sampled it and those at the start of the update."""
    lambdas: Tensor
    """(episodes,): lambda of the policy."""
    figures: dict[str, float]
    """Means over the batch that are known before a weight moves."""


def open_models(config: Config) -> Models:
    """Open what a run trains; raises Refused where its critic is not good enough."""
    if not config.compares and config.any_critic != "yes":
        gate(config.critic, actor=config.actor, least=config.min_explained_variance)
    device = accelerator()
    loaded, manifest = open_model(config)
    policy = Learner(loaded, manifest, config, device)
    critic = None
    if not config.compares:
        own = dataclasses.replace(config, learning_rate=config.critic_learning_rate)
        critic = CriticLearner(*open_critic(own, config.critic), own, device)
    start = None
    if config.kl and not _starts_below_adapter(config):
        start = load(config.base, dtype=getattr(torch, config.dtype)).model.to(device.device)
        start.requires_grad_(False)
    return Models(policy, critic, start)


def _starts_below_adapter(config: Config) -> bool:
    """Whether the model without its adapter is the start of the run: the adapter began with it."""
    return config.lora_rank > 0 and find(config.base).adapter is None


def version_of(step_version: str, name: str) -> int:
    """Return after which update of this run a step was sampled; 0 for the run's start."""
    number = step_version.removeprefix(f"{name}-step-")
    return int(number) if number != step_version and number.isdigit() else 0


def prepare(
    k: int, episodes: list[TokenEpisode], models: Models, config: Config, name: str
) -> Numbers | None:
    """Return all that update `k` (from 1) learns from; None where no step can be learnt from."""
    layout = lay_out(episodes, models.policy.loaded, config)
    if not layout.rows:
        return None
    rows, tokens = layout.rows, layout.tokens
    behave = torch.tensor([p for row in rows for p in row.step.logprobs])

    def logprobs(model: Any, batch: Batch, sampled: Tensor) -> Tensor:
        return token_logprobs(*sampled_logits(model, batch, sampled))

    prox = measure(models.policy, rows, tokens, config, logprobs)
    values = torch.zeros(tokens)
    if models.critic is not None:
        values = measure(models.critic, rows, tokens, config, sampled_values)

    parts = shaped(layout, config)
    rewards = token_rewards(layout, parts)
    figures = {
        "reward": _mean(one.total for one in parts),
        "outcome_reward": _mean(one.outcome for one in parts),
        "format_reward": _mean(sum(one.format) for one in parts),
        "length_penalty": _mean(one.length for one in parts),
    }
    if config.kl:
        with _as_start(models):
            reference = measure(models.policy, rows, tokens, config, logprobs, model=models.start)
        rewards = rewards + kl_reward(prox, reference, torch.ones_like(prox), beta=config.kl)
        figures["kl_start"] = float((prox - reference).mean())

    mask = layout.mask()
    lengths = mask.sum(1)
    lambdas = (
        torch.full((len(episodes),), config.lambda_policy, dtype=torch.float64)
        if config.lambda_policy
        else gae.length_adaptive_lambda(lengths, alpha=config.alpha)
    )
    if config.compares:
        compare = group.grpo if config.advantage == "grpo" else group.leave_one_out
        # An episode without a step to learn from is compared with all the same.
        bare = torch.tensor([one.total for one in parts], dtype=rewards.dtype)
        totals = torch.where(lengths > 0, layout.by_episode(rewards).sum(1), bare)
        each = compare(totals, [episode.group for episode in episodes])
        advantages = layout.flat(each[:, None].expand(mask.shape))
        returns = torch.zeros(tokens)
    else:
        both = gae.decoupled_gae(
            layout.by_episode(rewards.double()), layout.by_episode(values.double()), mask,
            gamma=config.gamma, lam_policy=lambdas, lam_critic=config.lambda_critic,
        )  # fmt: skip
        advantages, returns = (layout.flat(one).float() for one in both)

    staleness = layout.per_token(
        [max(0, k - 1 - version_of(row.step.version, name)) for row in rows]
    )
    learnt = staleness <= config.staleness
    if config.whiten == "yes" and not config.compares:
        advantages = masked_whiten(advantages, learnt)
    return Numbers(
        layout, behave, prox, values, rewards, advantages, returns, learnt,
        layout.per_token([float(episodes[row.episode].reward >= SUCCESS) for row in rows]) > 0,
        staleness, lambdas, figures,
    )  # fmt: skip


@contextlib.contextmanager
def _as_start(models: Models) -> Iterator[None]:
    """Where the start is the policy without its adapter: switch that off."""
    if models.start is not None:
        yield
        return
    model = models.policy.accelerator.unwrap_model(models.policy.model)
    with model.disable_adapter():
        yield


def update(k: int, numbers: Numbers, models: Models, config: Config) -> dict[str, float]:
    """Move the weights of policy and critic by update `k`; returns its figures, means per token."""
    layout, sums = numbers.layout, dict[str, float]()
    warm = min(1.0, k / max(1, config.warmup_steps))
    norms, critic_norms = [0.0], [0.0]
    for epoch in range(config.ppo_epochs):
        for turn in range(config.critic_updates if models.critic is not None else 0):
            for rows in _minibatches(layout, config, f"{config.seed}/{k}/{epoch}/critic/{turn}"):
                assert models.critic is not None
                figures = _critic_pass(rows, numbers, models.critic, config)
                if figures:
                    _add(sums, figures)
                    critic_norms.append(models.critic.step(warm * config.critic_learning_rate))
        for rows in _minibatches(layout, config, f"{config.seed}/{k}/{epoch}/policy"):
            figures = _policy_pass(rows, numbers, models.policy, config)
            if figures:
                _add(sums, figures)
                norms.append(models.policy.step(warm * config.learning_rate))
    if not math.isfinite(sums.get("loss", 0.0) + sums.get("value_loss", 0.0)):
        raise FloatingPointError(f"the loss of update {k} is not finite: lower the learning rate")
    policy_tokens = max(1.0, sums.get("policy_tokens", 0.0))
    critic_tokens = max(1.0, sums.get("critic_tokens", 0.0))
    means = {
        name: sums.get(name, 0.0) / policy_tokens
        for name in ("policy_loss", "entropy", "kl", "clip_high", "clip_low", "dual_clipped")
    }
    nll = sums.get("nll", 0.0) / max(1.0, sums.get("positive_tokens", 0.0))
    return means | {
        "loss": sums.get("loss", 0.0) / max(1, len(norms) - 1),
        "positive_nll": nll,
        "value_loss": sums.get("value_loss", 0.0) / critic_tokens,
        "lr": warm * config.learning_rate,
        "grad_norm": max(norms), "critic_grad_norm": max(critic_norms),
    }  # fmt: skip


def _minibatches(layout: Layout, config: Config, seed: str) -> list[list[TokenRow]]:
    """Return the rows of each mini-batch: its episodes follow from `seed`."""
    found = []
    for chosen in shuffled(len(layout.episodes), config.minibatches, seed):
        mine = set(chosen)
        found.append([row for row in layout.rows if row.episode in mine])
    return [rows for rows in found if rows]


def _policy_pass(
    rows: list[TokenRow], numbers: Numbers, policy: Learner, config: Config
) -> dict[str, float]:
    """Add the gradients of one mini-batch to the policy; nothing where all of it is too stale."""
    at = places(rows)
    count = int(numbers.learnt[at].sum())
    positives = int((numbers.learnt & numbers.positive)[at].sum())
    if not count:
        return {}

    def loss(model: Any, batch: Batch, sampled: Tensor, at: Tensor) -> tuple[Tensor, Batch]:
        logits, ids = sampled_logits(model, batch, sampled)
        logprobs = token_logprobs(logits, ids)
        prox, behave, advantages, mask, positive = (
            one[at].to(logprobs.device)
            for one in (
                numbers.prox, numbers.behave, numbers.advantages, numbers.learnt, numbers.positive,
            )
        )  # fmt: skip
        ppo = policy_loss(
            logprobs, prox, advantages, mask,
            clip_low=config.clip_low, clip_high=config.clip_high,
            dual_clip=config.dual_clip or None,
            weights=behaviour_weights(prox, behave, cap=config.ratio_cap),
        )  # fmt: skip
        value = ppo.sum / count
        nll, _ = positive_lm_loss(logprobs[:, None], mask[:, None], positive)
        if config.positive_lm and positives:
            # Over the tokens of what succeeded, not of all: VAPO eq. 9-10.
            value = value + config.positive_lm * nll / positives
        if config.entropy:
            value = value - config.entropy * _entropy_sum(logits, mask) / count
        return value, {
            "loss": value, "policy_loss": ppo.sum, "nll": nll, "kl": ppo.kl,
            "entropy": (entropy(logits) * mask).sum(),
            "clip_high": ppo.clipped_high, "clip_low": ppo.clipped_low,
            "dual_clipped": ppo.dual_clipped,
        }  # fmt: skip

    sums = learn(policy, rows, config, loss)
    return sums | {"policy_tokens": count, "positive_tokens": positives}


def _critic_pass(
    rows: list[TokenRow], numbers: Numbers, critic: Learner, config: Config
) -> dict[str, float]:
    """Add the gradients of one mini-batch to the critic."""
    count = int(numbers.learnt[places(rows)].sum())
    if not count:
        return {}

    def loss(model: Any, batch: Batch, sampled: Tensor, at: Tensor) -> tuple[Tensor, Batch]:
        values = sampled_values(model, batch, sampled)
        old, returns, mask = (
            one[at].to(values.device) for one in (numbers.values, numbers.returns, numbers.learnt)
        )
        summed, _ = value_loss(values, old, returns, mask, clip=config.value_clip or None)
        return summed / count, {"value_loss": summed}

    return learn(critic, rows, config, loss) | {"critic_tokens": count}


def _entropy_sum(logits: Tensor, mask: Tensor) -> Tensor:
    """Return the entropy over the mask with its gradient, for the bonus (PPO, arXiv 1707.06347, eq. 9)."""
    logs = logits.float().log_softmax(-1)
    return -((logs.exp() * logs).sum(-1) * mask).sum()


def figures_of(numbers: Numbers, models: Models, config: Config) -> dict[str, float]:
    """Return what an update shows of its episodes."""
    layout = numbers.layout
    episodes, rows, learnt = layout.episodes, layout.rows, numbers.learnt
    fresh = (numbers.staleness == 0) & learnt
    half_lives = gae.half_life(numbers.lambdas)
    figures = dict(numbers.figures)
    known = numbers.returns[learnt]
    if len(known) and float(known.max() - known.min()) > 1e-6:  # else there is nothing to explain
        figures["explained_variance"] = explained_variance(numbers.values, numbers.returns, learnt)
    lags = torch.tensor([float(numbers.staleness[row.start]) for row in rows])
    return figures | {
        "success": _mean(episode.reward >= SUCCESS for episode in episodes),
        # Of samples by the same weights alone: what is left is the two programs' difference.
        "mismatch_kl": float(mismatch_kl(numbers.prox, numbers.behave, fresh))
        / max(1, int(fresh.sum())),
        "behaviour_weight": float(
            masked_mean(behaviour_weights(numbers.prox, numbers.behave, cap=config.ratio_cap), learnt)
        ),
        "think_tokens": _mean(thought_tokens(row, models.policy.loaded) for row in rows),
        "response_tokens": layout.tokens / len(rows),
        "rounds": _mean(len(episode.steps) for episode in episodes),
        "staleness": float(lags.mean()), "staleness_max": float(lags.max()),
        "too_stale": float((lags > config.staleness).sum()),
        "left_out": float(sum(not keep for kept in layout.kept for keep in kept)),
        "episodes": float(len(episodes)), "tokens": float(layout.tokens),
        "read": float(sum(row.length for row in rows)),
        "lambda_policy": float(numbers.lambdas.mean()), "half_life": float(half_lives.mean()),
    }  # fmt: skip


def train(run: RunDir, config: Config, stop: Stop) -> Status:
    """Update until the last update or the stream's end, or until `stop` is asked."""
    models = open_models(config)
    name = config.version or run.path.name

    def one(k: int, episodes: list[TokenEpisode]) -> dict[str, float]:
        numbers = prepare(k, episodes, models, config, name)
        if numbers is None:
            return {"episodes": float(len(episodes))}
        return figures_of(numbers, models, config) | update(k, numbers, models, config)

    pace = Pace(
        name, config.updates, config.batch, config.group if config.compares else 1,
        config.staleness, config.save_every,
    )  # fmt: skip
    return Streamed(run, pace, models.policy, models.critic, one).run_to_the_end(stop)


def show(run: RunDir, config: Config) -> None:
    """Print one episode as the policy read it; what it said is coloured by its advantages."""
    pool = Pool(run.path, ())
    pool.look()
    episodes = list(pool.waiting.values())[: config.batch]
    if not episodes:
        raise Refused("the stream has no episode yet: there is nothing to show")
    models = open_models(config)
    numbers = prepare(1, episodes, models, config, config.version or run.path.name)
    if numbers is None:
        raise Refused(f"every step has more than {config.max_tokens} tokens: raise max_tokens")
    layout = numbers.layout
    episode, lam = episodes[0], float(numbers.lambdas[0])
    tokens = sum(layout.lengths()[0])
    print(
        f"episode {episode.id} of {len(episodes)}: {episode.task}, reward {episode.reward:g}, "
        f"{len(episode.steps)} steps, {tokens} tokens; lambda {lam:.4f}, half-life "
        f"{float(gae.half_life(lam)):.1f} tokens"
    )
    for row in [row for row in layout.rows if row.episode == 0]:
        prompt = models.policy.loaded.processor.tokenizer.decode(
            row.step.prompt_ids, skip_special_tokens=False
        )
        at = slice(row.start, row.stop)
        print(
            f"row {row.id}: reward {float(numbers.rewards[at].sum()):.3f}, "
            f"value {float(numbers.values[at][0]):.3f}, return {float(numbers.returns[at][0]):.3f}"
        )
        print(f"\033[90m{prompt}\033[0m{coloured(row, numbers.advantages[at], models)}")


def coloured(row: TokenRow, advantages: Tensor, models: Models) -> str:
    """Return what was said: green where it is to become likelier, red where less, bright for most."""
    decode = models.policy.loaded.processor.tokenizer.decode
    strong = float(advantages.abs().median())
    pieces = []
    for token, advantage in zip(row.step.output_ids, advantages.tolist(), strict=True):
        colour = (32 if advantage >= 0 else 31) + (60 if abs(advantage) > strong else 0)
        pieces.append(f"\033[{colour}m{decode([token], skip_special_tokens=False)}")
    return "".join(pieces) + "\033[0m"


def _add(sums: dict[str, float], figures: dict[str, float]) -> None:
    for name, figure in figures.items():
        sums[name] = sums.get(name, 0.0) + figure


def _mean(numbers: Any) -> float:
    found = [float(number) for number in numbers]
    return sum(found) / len(found)


if __name__ == "__main__":
    raise SystemExit(main("ppo", Config, train, show))
