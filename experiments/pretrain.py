"""The base model: a tiny Llama taught on made-up screens to find and to copy, by all their tokens.

Not one of the shipped trainers: those begin where a base model ends. From scratch every token of the
prompt counts, since a list of elements with an instruction over it teaches reading by itself.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

from agent.serving.checkpoint import Loaded, load
from agent.serving.manifest import write_manifest
from experiments import screens
from training.algos.schedule import cosine
from training.data.rows import PromptFormat, Row, rows

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
    """Train the checkpoint in `folder` in place, on a GPU if there is one.

    Returns the seconds that it took.
    """
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    loaded = load(folder)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model, pad = loaded.model.to(device), loaded.processor.pad_id
    model.requires_grad_(True)
    model.train()
    model.config.use_cache = False
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01, betas=(0.9, 0.98))
    begun, right = time.monotonic(), list[float]()
    for step, batch in enumerate(itertools.islice(_batches(loaded, seed), steps), start=1):
        for group in optimiser.param_groups:
            group["lr"] = cosine(step, steps, warmup=min(WARMUP, steps // 4 + 1), height=RATE)
        length = max(len(ids) for ids, _ in batch)
        padded = [one + [pad] * (length - len(one)) for one, _ in batch]
        ids = torch.tensor(padded, device=device)
        starts = torch.tensor([start for _, start in batch], device=device)
        targets = ids.masked_fill(ids == pad, -100)
        # Padding stands on the right: causal attention never looks at it.
        logits = model(input_ids=ids).logits[:, :-1]
        loss = _loss(logits, targets[:, 1:], starts)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        if step % 5 == 0 or step == steps:  # batches are of like length: one alone says little
            right.append(_right(logits, targets[:, 1:], starts))
        if step % 100 == 0 or step == steps:
            share, passed = sum(right) / len(right), time.monotonic() - begun
            print(
                f"base: step {step} of {steps} after {passed:.0f} s, {share:.3f} of the answers are right",
                flush=True,
            )
            right.clear()
    seconds = time.monotonic() - begun
    model.cpu().save_pretrained(folder)
    write_manifest(folder, loaded.manifest)
    return seconds


def _loss(logits: torch.Tensor, targets: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
    """Return the mean over all tokens plus the mean over those of the answers.

    Most tokens of a made-up screen can't be foreseen: alone they would drown the ones that can.
    """
    each = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    real = targets != -100
    answer = real & _answers(targets, starts)
    return each[real].mean() + each[answer].mean()


def _right(logits: torch.Tensor, targets: torch.Tensor, starts: torch.Tensor) -> float:
    """Return the share of answers whose every token is the likeliest one."""
    same = (logits.argmax(-1) == targets) | (targets == -100) | ~_answers(targets, starts)
    return float(same.all(1).float().mean())


def _answers(targets: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
    """Return which targets are at or behind the start of their row's answer."""
    return torch.arange(targets.shape[1], device=targets.device)[None] >= starts[:, None] - 1


class _Windows(Dataset[list[list[Encoded]]]):
    """Window n: the batches of made-up episodes that no other window has, each of like length."""

    def __init__(self, loaded: Loaded, seed: int) -> None:
        self._processor, self._seed = loaded.processor, seed

    def __getitem__(self, n: int) -> list[list[Encoded]]:
        made = rows(screens.episodes(self._seed * 1_000_003 + n, BATCH * WINDOW), FORM)
        encoded = sorted(
            (self._encoded(row) for row in made if isinstance(row, Row)), key=lambda e: len(e[0])
        )
        groups = [encoded[n : n + BATCH] for n in range(0, len(encoded) - BATCH + 1, BATCH)]
        random.Random(f"{self._seed}/{n}").shuffle(groups)
        return groups

    def _encoded(self, row: Row) -> Encoded:
        prompt = self._processor.prompt(row.messages).ids
        return [*prompt, *self._processor.target_ids(row.target)], len(prompt)


def _batches(loaded: Loaded, seed: int) -> Iterator[Sequence[Encoded]]:
    """Yield batches of encoded rows of like length, never the same episode twice."""
    # A GPU waits for the encoding; two cores would only take time from each other.
    workers = min(8, (os.cpu_count() or 1) - 2) if torch.cuda.is_available() else 0
    windows = DataLoader(
        _Windows(loaded, seed),
        batch_size=None,
        sampler=itertools.count(),  # type: ignore[arg-type]
        num_workers=max(0, workers),
    )
    for groups in windows:
        yield from groups
