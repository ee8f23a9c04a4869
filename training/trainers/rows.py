"""Rows of text and pictures as tokens, and batches of them as tensors.

Only what a row names gets loss: its target, or (continual pre-training) all of its text. Everything
is encoded before the first step, so that a broken row stops the run by name and nothing is lost.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from agent.serving.checkpoint import Loaded
from agent.serving.processor import Encoded, PromptError
from training.runs.rundir import RunDir
from training.trainers.job import Refused
from training.trainers.settings import Settings

IGNORE = -100
ALL = "all"


class BrokenRow(Refused):
    """A row can't be trained on; the message begins with its id."""


@dataclass(slots=True)
class Row:
    """One encoded row; the pixels of a row with pictures are made again when it is used.

    The tokens from `start` on get loss, and those of `earlier`: (first, end) of the targets of rows
    that this one took over because they are its prefix.
    """

    id: str
    record: Mapping[str, Any]
    prompt: Encoded
    target: list[int]
    start: int
    weight: float = 1.0
    earlier: tuple[tuple[int, int], ...] = ()

    @property
    def length(self) -> int:
        return len(self.prompt.ids) + len(self.target)

    @property
    def learnt(self) -> int:
        """How many tokens get loss."""
        return self.length - self.start + sum(end - first for first, end in self.earlier)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Which tokens get loss, as (first, end)."""
        return [*self.earlier, (self.start, self.length)]

    @property
    def source(self) -> str:
        """The dataset that it comes from, where a run mixes several."""
        return str(self.record.get("source", ""))


def encode(record: Mapping[str, Any], loaded: Loaded, blobs: str) -> Row:
    """Turn a row into tokens; raises BrokenRow."""
    name = str(record.get("id"))
    messages, target = record.get("messages"), record.get("target")
    if not isinstance(messages, list) or not messages:
        raise BrokenRow(f"row {name}: messages must be a list that is not empty")
    if not isinstance(target, str) or not target.strip():
        raise BrokenRow(f"row {name}: target must be a text that is not empty")
    try:
        prompt = loaded.processor.prompt(messages, lambda part: open_picture(part, blobs))
    except (PromptError, OSError) as error:
        raise BrokenRow(f"row {name}: {error}") from error
    # The very first token is said by nobody.
    start = 1 if record.get("loss") == ALL else len(prompt.ids)
    answer = loaded.processor.target_ids(target)
    return Row(name, record, prompt, answer, start, float(record.get("weight", 1.0)))


def open_picture(part: Mapping[str, Any], blobs: str) -> Any:
    """Return the picture of a message part; raises OSError naming it."""
    from PIL import Image

    sha = str(part.get("sha256", ""))
    try:
        with Image.open(Path(blobs) / "blobs" / sha[:2] / sha) as image:
            return image.convert("RGB")
    except OSError as error:
        raise OSError(f"picture {sha or '?'}: {error}") from error


def read_rows(run: RunDir, loaded: Loaded, settings: Settings) -> list[Row]:
    """Encode every row of a run before its first step; the first broken one stops it by its id.

    Rows without loss are skipped; rows longer than `max_tokens` are named and left out; rows that
    begin with all of the row before them take that one over.
    """
    rows = joined(kept(run.rows(), loaded, settings))
    if not rows:
        raise BrokenRow(f"{run.data} has no row to train on")
    return rows


def kept(records: Iterable[Mapping[str, Any]], loaded: Loaded, settings: Settings) -> list[Row]:
    """Return the encoded rows of `records` that have loss and are not too long."""
    rows = []
    for record in records:
        if not record.get("loss", True):
            continue
        row = encode(record, loaded, settings.blobs)
        if row.length > settings.max_tokens:
            print(f"row {row.id}: {row.length} tokens, more than {settings.max_tokens}: left out")
            continue
        if row.prompt.extra:
            row.prompt = Encoded(row.prompt.ids)  # pixels would fill the memory
        rows.append(row)
    return rows


def joined(rows: Iterable[Row]) -> list[Row]:
    """Return rows of which none is the exact prefix of the next: that one has its target too.

    The steps of an episode whose prompts only grow (as long as no screenshot has left the window)
    become one row, read once instead of once per step. Loss, tokens and gradients stay the same.
    """
    result: list[Row] = []
    for row in rows:
        before = result[-1] if result else None
        if before is not None and _continues(row, before):
            result[-1] = dataclasses.replace(row, earlier=tuple(before.spans))
        else:
            result.append(row)
    return result


def _continues(row: Row, before: Row) -> bool:
    same = row.weight == before.weight and row.source == before.source
    if not same or ALL in (row.record.get("loss"), before.record.get("loss")):
        return False
    return row.prompt.ids[: before.length] == before.prompt.ids + before.target


def collate(rows: Sequence[Row], loaded: Loaded, blobs: str) -> dict[str, torch.Tensor]:
    """Pad rows on the left, so that all targets end in the last column.

    Returns input_ids, attention_mask (n, t), labels (n, t; IGNORE where there is no loss), weights
    (n) and what pictures add.
    """
    length = max(row.length for row in rows)
    ids = torch.full((len(rows), length), loaded.processor.pad_id)
    mask = torch.zeros((len(rows), length), dtype=torch.long)
    labels = torch.full((len(rows), length), IGNORE)
    kinds = torch.zeros((len(rows), length), dtype=torch.long)
    extras: list[dict[str, torch.Tensor]] = []
    for n, row in enumerate(rows):
        tokens = torch.tensor(row.prompt.ids + row.target)
        ids[n, -row.length :] = tokens
        mask[n, -row.length :] = 1
        for first, end in row.spans:
            labels[n, length - row.length + first : length - row.length + end] = tokens[first:end]
        if row.record.get("images"):
            extra = encode(row.record, loaded, blobs).prompt.extra
            span = extra.pop("mm_token_type_ids")[0]
            kinds[n, length - row.length : length - len(row.target)] = span
            extras.append(extra)
    labels[kinds != 0] = IGNORE  # the patches of a picture are no text
    batch = {
        "input_ids": ids, "attention_mask": mask, "labels": labels,
        "weights": torch.tensor([row.weight for row in rows]),
    }  # fmt: skip
    if extras:
        batch["mm_token_type_ids"] = kinds
        for key in extras[0]:
            batch[key] = torch.cat([extra[key] for extra in extras])
    return batch


def coloured(row: Row, loaded: Loaded) -> str:
    """Return a row as the model reads it: grey gets no loss, green does."""
    decode = loaded.processor.tokenizer.decode
    ids = row.prompt.ids + row.target
    text, at = "", 0
    for first, end in row.spans:
        text += f"\033[90m{decode(ids[at:first], skip_special_tokens=False)}\033[0m"
        text += f"\033[32m{decode(ids[first:end], skip_special_tokens=False)}\033[0m"
        at = end
    return text
