"""A toy to learn on: a prompt names a letter, the right answer is that letter; no browser, no server.

`play` samples from a checkpoint folder as a policy server would and says what a stream would hold.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import torch

from agent.serving.checkpoint import Loaded, load
from training.stream_rows import TokenEpisode, TokenStep

LETTERS = "ABCD"


def steps_of(
    loaded: Loaded, prompts: Sequence[str], rng: torch.Generator, *, version: str, tokens: int = 2
) -> list[TokenStep]:
    """Sample `tokens` tokens for each prompt (all of one length), each from the model as it is."""
    ids = torch.tensor([loaded.processor._ids(prompt) for prompt in prompts])
    said, sure = [], []
    seen = ids
    with torch.no_grad():
        for _ in range(tokens):
            logs = loaded.model(seen).logits[:, -1].float().log_softmax(-1)
            token = torch.multinomial(logs.exp(), 1, generator=rng)
            said.append(token)
            sure.append(logs.gather(1, token))
            seen = torch.cat([seen, token], 1)
    outputs, logprobs = torch.cat(said, 1).tolist(), torch.cat(sure, 1).tolist()
    return [
        TokenStep(prompt, output, logprob, version)
        for prompt, output, logprob in zip(ids.tolist(), outputs, logprobs, strict=True)
    ]


def play(
    folder: Path | str | Loaded,
    count: int,
    *,
    seed: int,
    first: int = 1,
    version: str = "base",
    group: int = 1,
    steps: int = 2,
    staleness: int = 0,
) -> list[TokenEpisode]:
    """Play `count` episodes of `steps` steps; the reward is 1 where every answer starts rightly."""
    loaded = folder if isinstance(folder, Loaded) else load(folder)
    rng, words = torch.Generator().manual_seed(seed), random.Random(seed)
    chosen = [words.choice(LETTERS) for _ in range(-(-count // group)) for _ in range(group)]
    chosen = chosen[:count]
    columns = [
        steps_of(loaded, [f"{n}:say {letter}>" for letter in chosen], rng, version=version)
        for n in range(steps)
    ]
    made = []
    for n, letter in enumerate(chosen):
        own = [column[n] for column in columns]
        right = all(step.output_ids[0] == loaded.processor._ids(letter)[0] for step in own)
        number = first + n
        made.append(
            TokenEpisode(
                f"episode-{number}-1", number, number, f"toy/say#{seed}-{n // group}", "say",
                float(right), "ended", staleness, own,
            )
        )  # fmt: skip
    return made
