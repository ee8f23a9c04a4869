"""The base model: a tiny Llama taught on made-up screens to find and to copy, by all their tokens.

Not one of the shipped trainers: those begin where a base model ends. From scratch every token of the
prompt counts, since a list of elements with an instruction over it teaches reading by itself.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import torch
import torch.nn.functional as F

from agent.serving.checkpoint import load
from agent.serving.manifest import write_manifest
from experiments import screens
from training.algos.schedule import cosine
from training.rows import PromptFormat, Row, rows

Encoded: TypeAlias = tuple[list[int], int]
"""The tokens of a row, and where its answer begins."""

FORM = PromptFormat("element", "elements")
STEPS = 4000
BATCH, WINDOW = 48, 16
RATE, WARMUP = 3e-3, 60


def texts(seed: int, count: int) -> list[str]:
    """Return prompts and answers of made-up episodes, for a tokenizer to be trained on."""
    made = [row for row in rows(screens.episodes(seed, count), FORM) if isinstance(row, Row)]
    return [text for row in made for text in (row.messages[-1]["content"], row.target)]


def pretrain(folder: Path, *, steps: int, seed: int = 0, threads: int = 2) -> float:
    """Train the checkpoint in `folder` in place; returns the seconds that it took."""
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    loaded = load(folder)
    model, pad = loaded.model, loaded.processor.pad_id
    model.requires_grad_(True)
    model.train()
    model.config.use_cache = False
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01, betas=(0.9, 0.98))

    def encode(row: Row) -> Encoded:
        prompt = loaded.processor.prompt(row.messages).ids
        return [*prompt, *loaded.processor.target_ids(row.target)], len(prompt)

    begun, right = time.monotonic(), list[float]()
    for step, batch in enumerate(itertools.islice(_batches(encode, seed), steps), start=1):
        for group in optimiser.param_groups:
            group["lr"] = cosine(step, steps, warmup=min(WARMUP, steps // 4 + 1), height=RATE)
        length = max(len(ids) for ids, _ in batch)
        ids = torch.tensor([one + [pad] * (length - len(one)) for one, _ in batch])
        targets = ids.masked_fill(ids == pad, -100)
        # Padding stands on the right: causal attention never looks at it.
        logits = model(input_ids=ids).logits[:, :-1]
        loss = _loss(logits, targets[:, 1:], [start for _, start in batch])
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        if step % 5 == 0 or step == steps:  # batches are of like length: one alone says little
            right.append(_right(logits, targets, [start for _, start in batch]))
        if step % 100 == 0 or step == steps:
            share = sum(right) / len(right)
            print(f"base: step {step} of {steps}, {share:.2f} of the answers are right", flush=True)
            right.clear()
            model.save_pretrained(folder)  # a look at it while it learns
    seconds = time.monotonic() - begun
    model.save_pretrained(folder)
    write_manifest(folder, loaded.manifest)
    return seconds


def _loss(logits: torch.Tensor, targets: torch.Tensor, starts: Sequence[int]) -> torch.Tensor:
    """Return the mean over all tokens plus the mean over those of the answers.

    Most tokens of a made-up screen can't be foreseen: alone they would drown the ones that can.
    """
    each = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    real = targets != -100
    answer = real & (torch.arange(targets.shape[1])[None] >= torch.tensor(starts)[:, None] - 1)
    return each[real].mean() + each[answer].mean()


def _right(logits: torch.Tensor, targets: torch.Tensor, starts: Sequence[int]) -> float:
    """Return the share of answers whose every token is the likeliest one."""
    said, wanted = logits.argmax(-1), targets[:, 1:]
    same = (said == wanted) | (wanted == -100)
    return sum(bool(row[at - 1 :].all()) for row, at in zip(same, starts, strict=True)) / len(
        starts
    )


def _batches(encode: Callable[[Row], Encoded], seed: int) -> Iterator[Sequence[Encoded]]:
    """Yield batches of encoded rows of like length, never the same episode twice."""
    rng = random.Random(seed)
    for part in itertools.count():
        made = rows(screens.episodes(seed * 1_000_003 + part, BATCH * WINDOW), FORM)
        encoded = sorted(
            (encode(row) for row in made if isinstance(row, Row)), key=lambda one: len(one[0])
        )
        groups = [encoded[n : n + BATCH] for n in range(0, len(encoded) - BATCH + 1, BATCH)]
        rng.shuffle(groups)
        yield from groups
