"""Answer one prompt n times: one prefill, then all rows together, token by token.

Either the rows are sampled, or they are alternatives: the most likely answer first, then the answers
that leave it at one token. A well-trained model is so sure that samples hardly ever differ; an
annotator wants to see what else it considered.
"""

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
    """How to answer; `greedy_first` makes the first row the most likely tokens.

    `alternatives` does not sample: temperature, top_p and seed play no part.
    """

    n: int = 1
    max_tokens: int = 256
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None
    greedy_first: bool = False
    alternatives: bool = False


Choose = Callable[[int, torch.Tensor], torch.Tensor]
"""(position in the answer, logits (n, vocabulary)) -> one token per row (n,)."""


@torch.inference_mode()
def generate(
    decoder: Decoder,
    prompt: Encoded,
    sampling: Sampling,
    eos_ids: Sequence[int],
    stopped: Callable[[list[int]], bool] | None = None,
) -> list[Sampled]:
    """Return `sampling.n` answers; a row ends at an end token or where `stopped(ids)` says so.

    The same seed, prompt and weights give the same answers. A short answer has fewer alternatives
    than asked for. Raises PromptError if the prompt leaves no room.
    """
    room = min(sampling.max_tokens, decoder.limit - len(prompt.ids))
    if room < 1:
        raise PromptError(f"the prompt has {len(prompt.ids)} tokens, the limit is {decoder.limit}")
    first, state = decoder.start(prompt, room)

    def decode(n: int, choose: Choose) -> list[Sampled]:
        """Continue the prompt in `n` rows until each has ended."""
        rows = [Sampled() for _ in range(n)]
        logits, own = first.expand(n, -1), decoder.expand(state, n)
        for position in range(room):
            tokens = choose(position, logits)
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
            logits = decoder.step(tokens, own)
        return rows

    if sampling.alternatives and sampling.n > 1:
        return _alternatives(decode, sampling.n, eos_ids)
    greedy, random = greedy_rows(sampling), seeded(sampling)
    return decode(sampling.n, lambda _, logits: choose(logits, greedy, sampling, random))


def seeded(sampling: Sampling) -> torch.Generator:
    """Return the generator that a request draws with."""
    random = torch.Generator()
    if sampling.seed is None:
        random.seed()
    else:
        random.manual_seed(sampling.seed)
    return random


def greedy_rows(sampling: Sampling) -> torch.Tensor:
    """Return which of the n rows take the most likely token (n,)."""
    greedy = torch.zeros(sampling.n, dtype=torch.bool)
    greedy[: 1 if sampling.greedy_first else 0] = True
    if sampling.temperature <= 0:
        greedy[:] = True
    return greedy


def departure(scores: torch.Tensor, best: int, eos_ids: Sequence[int]) -> tuple[float, int]:
    """Return log-probability and token of the best other choice (scores: (vocabulary,))."""
    others = scores.clone()
    others[[best, *eos_ids]] = float("-inf")
    return float(others.max()), int(others.argmax())


def _alternatives(
    decode: Callable[[int, Choose], list[Sampled]], n: int, eos_ids: Sequence[int]
) -> list[Sampled]:
    """Return the most likely answer, then up to n - 1 others, the likeliest departure first.

    Each other one follows the best up to a token, takes the second most likely one there, and goes on
    greedily. Ending early is no alternative.
    """
    departures: list[tuple[float, int]] = []  # per position: log-probability and token

    def best_of(position: int, logits: torch.Tensor) -> torch.Tensor:
        best = logits.argmax(-1)
        departures.append(departure(logits[0].log_softmax(-1), int(best[0]), eos_ids))
        return best

    best = decode(1, best_of)[0]
    places = sorted(range(len(best.ids)), key=lambda place: -departures[place][0])[: n - 1]
    if not places:
        return [best]

    def depart(position: int, logits: torch.Tensor) -> torch.Tensor:
        tokens = logits.argmax(-1)
        for row, place in enumerate(places):
            if position < place:
                tokens[row] = best.ids[position]
            elif position == place:
                tokens[row] = departures[place][1]
        return tokens

    return [best, *decode(len(places), depart)]


def choose(
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
