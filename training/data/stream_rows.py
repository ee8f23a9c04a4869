"""What RL learns from: episodes as the tokens that were sampled, one line each in `stream.jsonl`.

Whoever feeds a trainer appends, the trainer reads; both may be killed at any moment. A line counts
once it ends: what a kill has cut short is written again. No Django here, no torch.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agent.loop import UNREADABLE
from trajectory import Trajectory

STREAM = "stream.jsonl"
END = '{"end": true}\n'
"""The last line of a stream to which nothing will be added any more."""


class NoSamples(ValueError):
    """An episode can't be learnt from: a step lacks the tokens that were sampled."""


@dataclass(frozen=True, slots=True)
class TokenStep:
    """One decision: what the policy read, what it sampled, and how sure it was.

    `output_ids` and `logprobs` have the same length. `messages` are only there where the prompt has
    pictures, which a trainer opens by their sha256. `reward` is an intermediate signal.
    """

    prompt_ids: list[int]
    output_ids: list[int]
    logprobs: list[float]
    version: str
    readable: bool = True
    reward: float = 0.0
    messages: list[dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class TokenEpisode:
    """One episode; `group` names what it is compared with: the same task and seed.

    `sequence` orders the stream. `staleness` is how many updates were made while it was played.
    """

    id: str
    episode: int
    sequence: int
    group: str
    task: str
    reward: float
    outcome: str
    staleness: int
    steps: list[TokenStep]

    @property
    def tokens(self) -> int:
        """How many tokens the policy sampled: the length l of the length-adaptive lambda."""
        return sum(len(step.output_ids) for step in self.steps)

    def to_line(self) -> str:
        """Return one line of the stream, with its newline."""
        return json.dumps(asdict(self), ensure_ascii=False) + "\n"


def of_trajectory(
    trajectory: Trajectory,
    *,
    episode: int,
    sequence: int,
    group: str,
    reward: float,
    staleness: int = 0,
    messages: Mapping[int, list[dict[str, Any]]] | None = None,
) -> TokenEpisode:
    """Return an episode's tokens; `messages` are those of the steps whose prompts had pictures.

    Raises NoSamples.
    """
    steps = []
    for step in trajectory.steps:
        sample = step.sample
        if sample is None or not sample.output_ids:
            raise NoSamples(
                f"{trajectory.id}/{step.index} has no token ids: only our own server gives them"
            )
        steps.append(
            TokenStep(
                list(sample.prompt_ids),
                list(sample.output_ids),
                list(sample.output_logprobs),
                sample.version,
                readable=not step.error.startswith(UNREADABLE),
                messages=(messages or {}).get(step.index),
            )
        )
    if not steps:
        raise NoSamples(f"{trajectory.id} has no step")
    return TokenEpisode(
        trajectory.id, episode, sequence, group, trajectory.task, reward,
        trajectory.outcome.value if trajectory.outcome else "", staleness, steps,
    )  # fmt: skip


def append(directory: Path, episodes: Iterable[TokenEpisode], *, end: bool = False) -> None:
    """Add whole lines to the stream of a run; they are on disk when this returns.

    What a kill has left without a newline is cut off first. With `end` nothing may follow.
    """
    with (directory / STREAM).open("a+b") as file:
        file.seek(0)
        size = _whole(file)
        file.truncate(size)
        file.seek(size)
        for episode in episodes:
            file.write(episode.to_line().encode())
        if end:
            file.write(END.encode())
        file.flush()
        os.fsync(file.fileno())


class Reader:
    """Reads a stream as it grows; `ended` once nothing will follow."""

    def __init__(self, directory: Path) -> None:
        self._path, self._at, self.ended = directory / STREAM, 0, False

    def new(self) -> Iterator[TokenEpisode]:
        """Yield the whole lines that were not yielded before; raises ValueError for a broken one."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._at)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._at += len(line)
                record = json.loads(line)
                if record.get("end"):
                    self.ended = True
                    return
                steps = [TokenStep(**step) for step in record.pop("steps")]
                yield TokenEpisode(**record, steps=steps)


def last_sequence(directory: Path) -> int:
    """Return the sequence of the last whole line, 0 for none: where a feeder goes on."""
    last = 0
    for episode in Reader(directory).new():
        last = episode.sequence
    return last


def _whole(file: Any) -> int:
    """Return how many bytes of the file are whole lines."""
    size = int(file.seek(0, os.SEEK_END))
    while size:
        start = max(0, size - 65_536)
        file.seek(start)
        found = file.read(size - start).rfind(b"\n")
        if found >= 0:
            return start + int(found) + 1
        size = start
    return 0
