"""Keys and values of prompts and answers: rows of unlike length, and prompts kept for their start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

STEP = 128
"""Room grows by so many tokens at once."""
MIN_SHARED = 16
"""Fewer tokens than that are read as fast as they are copied."""


class Cache:
    """Keys and values, each (layers, rows, key-value heads, room, head width) in fp32.

    How much of a row is used is its owner's to know. What is not used is finite: attention masks it,
    and a masked NaN would still be one.
    """

    def __init__(self, layers: int, kv_heads: int, head_dim: int) -> None:
        self.keys = torch.zeros(layers, 0, kv_heads, 0, head_dim)
        self.values = self.keys.clone()

    @property
    def rows(self) -> int:
        return self.keys.shape[1]

    @property
    def room(self) -> int:
        return self.keys.shape[3]

    def fit(self, rows: int, room: int, *, used: int) -> None:
        """Have at least `rows` rows of `room` tokens; the first `used` rows keep what they hold.

        Without used rows much unused room is given up: one long prompt is not paid for ever.
        """
        room = -(-room // STEP) * STEP
        if used or self.room <= 4 * room:
            if rows <= self.rows and room <= self.room:
                return
            room = max(room, self.room)
            rows = self.rows if rows <= self.rows else max(rows, 2 * self.rows)
        layers, _, heads, _, width = self.keys.shape
        keys, values = torch.zeros(2, layers, rows, heads, room, width)
        if used:
            keys[:, :used, :, : self.room] = self.keys[:, :used]
            values[:, :used, :, : self.room] = self.values[:, :used]
        self.keys, self.values = keys, values

    def copy(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` tokens of one row to another."""
        for part in (self.keys, self.values):
            part[:, target, :, :length] = part[:, source, :, :length]


@dataclass(frozen=True, slots=True)
class _Prompt:
    ids: list[int]
    keys: torch.Tensor
    values: torch.Tensor


class Prefixes:
    """Prompts that were read, the last used at the end: what begins alike need not be read again.

    An agent's next prompt begins like its last one. Holds at most `limit`
    tokens; 30 layers of 3 heads of 64 take 46 KB each.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: list[_Prompt] = []

    def find(self, ids: Sequence[int], cache: Cache, row: int) -> int:
        """Copy the longest known beginning of `ids` into a row; return its tokens, 0 if too few.

        The last token is always left to read: its logits are what a prompt is read for.
        """
        best, length = None, MIN_SHARED - 1
        for prompt in self._kept:
            common = _common(prompt.ids, ids[:-1])
            if common > length:
                best, length = prompt, common
        if best is None:
            return 0
        cache.keys[:, row, :, :length] = best.keys[:, :, :length]
        cache.values[:, row, :, :length] = best.values[:, :, :length]
        self._kept = [*(prompt for prompt in self._kept if prompt is not best), best]
        return length

    def keep(self, ids: Sequence[int], cache: Cache, row: int) -> None:
        """Remember a prompt that a row holds; the oldest ones make room.

        It takes the place of the one that it was found to begin like.
        """
        length = len(ids)
        if length > self._limit:
            return
        if self._kept and 2 * _common(self._kept[-1].ids, ids) >= len(self._kept[-1].ids):
            del self._kept[-1]
        keys, values = (p[:, row, :, :length].clone() for p in (cache.keys, cache.values))
        self._kept.append(_Prompt(list(ids), keys, values))
        while sum(len(prompt.ids) for prompt in self._kept) > self._limit:
            del self._kept[0]


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many tokens two lists begin with alike."""
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    return next(n for n in range(length) if one[n] != other[n])
