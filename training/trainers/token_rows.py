"""Episodes as tokens, laid out for training: token in, token out, nothing is ever tokenised again.

A batch is a list of episodes. Each of their steps is one row: the prompt that the policy read, then
what it sampled. All that is known per sampled token (log-probabilities, values, advantages) is one
flat vector over the whole batch: episode after episode, step after step. So the tokens of an episode
are joined as GAE wants them, and a row finds its own by `start` and `stop`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from agent.serving.checkpoint import Loaded
from agent.serving.processor import PromptError
from training.data.stream_rows import TokenEpisode, TokenStep
from training.trainers.rows import BrokenRow, open_picture
from training.trainers.settings import Settings

PATCHES = ("<|image_pad|>", "<|video_pad|>")
"""Tokens that stand for parts of a picture: a model that samples one can't be asked again."""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One step; `episode` is its episode's place in the batch, `start` its first token's."""

    id: str
    step: TokenStep
    episode: int
    start: int

    @property
    def stop(self) -> int:
        return self.start + len(self.step.output_ids)

    @property
    def length(self) -> int:
        return len(self.step.prompt_ids) + len(self.step.output_ids)


@dataclass(frozen=True, slots=True)
class Layout:
    """A batch of episodes as rows; `kept[e]` says which steps of episode e are among them."""

    episodes: list[TokenEpisode]
    rows: list[TokenRow]
    kept: list[list[bool]]

    @property
    def tokens(self) -> int:
        """How many sampled tokens the flat vectors have."""
        return self.rows[-1].stop if self.rows else 0

    def lengths(self) -> list[list[int]]:
        """Return the sampled tokens of each step of each episode; 0 for a step that is left out."""
        return [
            [len(step.output_ids) if keep else 0 for step, keep in zip(e.steps, kept, strict=True)]
            for e, kept in zip(self.episodes, self.kept, strict=True)
        ]

    def per_token(self, values: Sequence[float]) -> Tensor:
        """Return the flat vector (tokens,) of one number per row."""
        counts = torch.tensor([len(row.step.output_ids) for row in self.rows], dtype=torch.long)
        return torch.tensor(values, dtype=torch.float32).repeat_interleave(counts)

    def by_episode(self, flat: Tensor) -> Tensor:
        """Return (episodes, most tokens of one): a flat vector as a row per episode, 0 behind it."""
        mask = self.mask()
        return flat.new_zeros(mask.shape).masked_scatter(mask, flat)

    def flat(self, by_episode: Tensor) -> Tensor:
        """Return the flat vector (tokens,) again: the inverse of by_episode."""
        return by_episode[self.mask()]

    def mask(self) -> Tensor:
        """Return (episodes, most tokens of one): where there is a token."""
        counts = torch.tensor([sum(steps) for steps in self.lengths()], dtype=torch.long)
        longest = int(counts.max()) if len(counts) else 0
        return torch.arange(longest)[None] < counts[:, None]


def lay_out(episodes: Sequence[TokenEpisode], loaded: Loaded, settings: Settings) -> Layout:
    """Return the rows of `episodes`; a step that can't be learnt from is named and left out.

    Such a step has more than `max_tokens`, or the policy sampled a token that stands for pictures.
    GAE passes over it as over an observation. Raises BrokenRow.
    """
    pads = {loaded.processor.tokenizer.token_to_id(token) for token in PATCHES} - {None}
    if not loaded.processor.sees:
        pads = set()
    rows: list[TokenRow] = []
    kept: list[list[bool]] = []
    at = 0
    for place, episode in enumerate(episodes):
        kept.append([])
        for n, step in enumerate(episode.steps):
            row = TokenRow(f"{episode.id}/{n}", step, place, at)
            if len(step.output_ids) != len(step.logprobs) or not step.output_ids:
                raise BrokenRow(
                    f"row {row.id}: {len(step.output_ids)} tokens were sampled, "
                    f"{len(step.logprobs)} log-probabilities are there"
                )
            why = ""
            if row.length > settings.max_tokens:
                why = f"{row.length} tokens, more than {settings.max_tokens}"
            elif pads & set(step.output_ids):
                why = "it says a token that stands for a picture"
            kept[-1].append(not why)
            if why:
                print(f"row {row.id}: {why}: left out")
            else:
                rows.append(row)
                at = row.stop
    return Layout(list(episodes), rows, kept)


def collate(
    rows: Sequence[TokenRow], loaded: Loaded, blobs: str
) -> tuple[dict[str, Tensor], Tensor]:
    """Return what a model is asked, (n, t) padded on the left, and which tokens were sampled.

    The second one is (n, longest output): True where the last columns of input_ids hold a sampled
    token. Raises BrokenRow.
    """
    length = max(row.length for row in rows)
    longest = max(len(row.step.output_ids) for row in rows)
    ids = torch.full((len(rows), length), loaded.processor.pad_id)
    mask = torch.zeros((len(rows), length), dtype=torch.long)
    kinds = torch.zeros((len(rows), length), dtype=torch.long)
    sampled = torch.zeros((len(rows), longest), dtype=torch.bool)
    extras: list[dict[str, Tensor]] = []
    for n, row in enumerate(rows):
        said = len(row.step.output_ids)
        ids[n, -row.length :] = torch.tensor(row.step.prompt_ids + row.step.output_ids)
        mask[n, -row.length :] = 1
        sampled[n, longest - said :] = True
        if row.step.messages is not None and (extra := _pictures(row, loaded, blobs)):
            kinds[n, length - row.length : length - said] = extra.pop("mm_token_type_ids")[0]
            extras.append(extra)
    batch = {"input_ids": ids, "attention_mask": mask}
    if extras:
        batch["mm_token_type_ids"] = kinds
        for key in extras[0]:
            batch[key] = torch.cat([extra[key] for extra in extras])
    else:
        # With pictures the model counts places itself, in three dimensions.
        batch["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0)
    return batch, sampled


def places(rows: Sequence[TokenRow]) -> Tensor:
    """Return where the sampled tokens of `rows`, in this order, are in the flat vectors."""
    return torch.cat([torch.arange(row.start, row.stop) for row in rows])


def sampled_logits(model: Any, batch: dict[str, Tensor], sampled: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logits (m, vocabulary) that said the m sampled tokens, and those tokens (m,).

    The language head is asked for the last columns alone: prompts are most of a row.
    """
    longest = sampled.shape[1]
    logits = model(**batch, logits_to_keep=longest + 1).logits[:, :-1]
    return logits[sampled], batch["input_ids"][:, -longest:][sampled]


def sampled_values(model: Any, batch: dict[str, Tensor], sampled: Tensor) -> Tensor:
    """Return the critic's values (m,) of the states in which the m sampled tokens were said."""
    values: Tensor = model(keep=sampled.shape[1] + 1, **batch)[sampled]
    return values


def thought_tokens(row: TokenRow, loaded: Loaded) -> int:
    """Return how many sampled tokens come before "Action:"; all of them where it is not said."""
    ids = row.step.output_ids
    decode = loaded.processor.tokenizer.decode
    end = decode(ids, skip_special_tokens=False).find("Action:")
    if end < 0:
        return len(ids)
    low, high = 0, len(ids)  # the most tokens whose text is not beyond the word
    while low < high:
        middle = (low + high + 1) // 2
        if len(decode(ids[:middle], skip_special_tokens=False)) <= end:
            low = middle
        else:
            high = middle - 1
    return low


def shuffled(count: int, parts: int, seed: str) -> list[list[int]]:
    """Return 0..count-1 in an order that follows from `seed`, in at most `parts` even parts."""
    order = list(range(count))
    random.Random(seed).shuffle(order)
    size = max(1, math.ceil(count / parts))
    return [order[at : at + size] for at in range(0, count, size)]


def _pictures(row: TokenRow, loaded: Loaded, blobs: str) -> dict[str, Tensor]:
    """Return the tensors of a prompt's pictures; raises BrokenRow unless it is the same prompt."""
    assert row.step.messages is not None
    try:
        prompt = loaded.processor.prompt(row.step.messages, lambda part: open_picture(part, blobs))
    except (PromptError, OSError) as error:
        raise BrokenRow(f"row {row.id}: {error}") from error
    if prompt.ids != row.step.prompt_ids:
        at = next(
            (n for n, (a, b) in enumerate(zip(prompt.ids, row.step.prompt_ids, strict=False)) if a != b),
            min(len(prompt.ids), len(row.step.prompt_ids)),
        )  # fmt: skip
        raise BrokenRow(
            f"row {row.id}: its messages give {len(prompt.ids)} tokens, {len(row.step.prompt_ids)} "
            f"were read when it was sampled, and they differ from token {at} on: the policy was "
            "served with another tokenizer, chat template or picture size"
        )
    return prompt.extra
