"""Sample n answers to one prompt: one prefill, then all rows together, token by token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from agent.serving.decoder import Decoder
from agent.serving.processor import Encoded, PromptError


@dataclass(slots=True)
class Sampled:
    """One answer: its tokens (an end token included, if it came) and their log-probabilities.

    `logprobs` are natural logarithms under the model itself, before temperature and top_p.
    `finish` is "stop" or "length".
    """

    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish: str = ""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample; `greedy_first` makes the first row the most likely tokens."""

    n: int = 1
    max_tokens: int = 256
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None
    greedy_first: bool = False


@torch.inference_mode()
def generate(
    decoder: Decoder,
    prompt: Encoded,
    sampling: Sampling,
    eos_ids: Sequence[int],
    stopped: Callable[[list[int]], bool] | None = None,
) -> list[Sampled]:
    """Return `sampling.n` answers; a row ends at an end token or where `stopped(ids)` says so.

    The same seed, prompt and weights give the same answers. Raises PromptError if the prompt leaves
    no room.
    """
    room = min(sampling.max_tokens, decoder.limit - len(prompt.ids))
    if room < 1:
        raise PromptError(f"the prompt has {len(prompt.ids)} tokens, the limit is {decoder.limit}")
    random = torch.Generator()
    if sampling.seed is None:
        random.seed()
    else:
        random.manual_seed(sampling.seed)
    greedy = torch.zeros(sampling.n, dtype=torch.bool)
    greedy[: 1 if sampling.greedy_first else 0] = True
    if sampling.temperature <= 0:
        greedy[:] = True

    first, state = decoder.start(prompt, room)
    state = decoder.expand(state, sampling.n)
    logits = first.expand(sampling.n, -1)
    rows = [Sampled() for _ in range(sampling.n)]
    for _ in range(room):
        tokens = _choose(logits, greedy, sampling, random)
        chosen = logits.log_softmax(-1).gather(1, tokens[:, None])[:, 0]
        for row, token, logprob in zip(rows, tokens.tolist(), chosen.tolist(), strict=True):
            if row.finish:
                continue
            row.ids.append(token)
            row.logprobs.append(logprob)
            if token in eos_ids or (stopped is not None and stopped(row.ids)):
                row.finish = "stop"
            elif len(row.ids) == room:
                row.finish = "length"
        if all(row.finish for row in rows):
            break
        logits = decoder.step(tokens, state)
    return rows


def _choose(
    logits: torch.Tensor, greedy: torch.Tensor, sampling: Sampling, random: torch.Generator
) -> torch.Tensor:
    """Return one token per row (n,) of logits (n, vocabulary)."""
    best = logits.argmax(-1)
    if bool(greedy.all()):
        return best
    scores = logits / sampling.temperature
    if sampling.top_p < 1:
        ordered, order = scores.sort(-1, descending=True)
        before = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1)
        ordered = ordered.masked_fill(before >= sampling.top_p, float("-inf"))
        scores = torch.full_like(scores, float("-inf")).scatter(1, order, ordered)
    drawn = torch.multinomial(scores.softmax(-1), 1, generator=random)[:, 0]
    return torch.where(greedy, best, drawn)
