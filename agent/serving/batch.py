"""Many requests decoded together: at every token newcomers join and finished ones leave.

Each answer is what `agent.serving.generate` gives for the request alone, up to the noise of sums in
another order: the same seeds draw the same tokens, whoever else is in the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from agent.serving.cache import MIN_SHARED, Prefixes
from agent.serving.generate import Sampled, Sampling, choose, departure, greedy_rows, seeded
from agent.serving.llama import Llama
from agent.serving.processor import PromptError

MAX_CELLS = 32_768
"""Rows times room of the cache; beyond it newcomers wait (46 KB each in the small model)."""
MAX_PREFIX = 4096
"""Tokens of prompts that are kept for prompts that begin alike."""

Stopped = Callable[[list[int]], bool]
Done = Callable[[list[Sampled]], None]
Failed = Callable[[BaseException], None]


@dataclass(slots=True)
class Row:
    """One answer under way, in the cache row of its place in the batch."""

    job: Job
    number: int  # among the job's answers
    sampled: Sampled
    length: int  # tokens in the cache; the newest of the answer is not read yet


@dataclass(slots=True)
class Job:
    """One request under way. `logits` (n, vocabulary) are the newest of each of its answers."""

    ids: list[int]
    sampling: Sampling
    eos_ids: Sequence[int]
    stopped: Stopped | None
    done: Done
    failed: Failed
    room: int = 0
    answers: list[Sampled] = field(default_factory=list)
    logits: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    random: torch.Generator = field(default_factory=torch.Generator)
    departures: list[tuple[float, int]] = field(default_factory=list)
    departed: bool = False

    @property
    def explores(self) -> bool:
        """Whether it wants the best answer and its alternatives, not samples."""
        return self.sampling.alternatives and self.sampling.n > 1


class Batch:
    """The requests that one model answers at a time. Not safe for two threads."""

    def __init__(self, decoder: Llama, slots: int) -> None:
        self.slots = slots
        self._decoder = decoder
        self._cache = decoder.cache()
        self._prefixes = Prefixes(MAX_PREFIX)
        self._rows: list[Row] = []
        self._jobs: list[Job] = []

    @property
    def rows(self) -> int:
        """How many answers are under way."""
        return len(self._rows)

    @property
    def jobs(self) -> Sequence[Job]:
        return self._jobs

    def admits(self, job: Job) -> bool:
        """Whether a newcomer finds room now; one that is alone always does."""
        if not self._jobs:
            return True
        width = job.sampling.n + sum(other.sampling.n for other in self._jobs)
        longest = max(len(other.ids) + other.sampling.max_tokens for other in (job, *self._jobs))
        longest = min(longest, self._decoder.limit)
        return width <= self.slots and width * longest <= MAX_CELLS

    def add(self, job: Job) -> int:
        """Read the prompt and choose the first tokens.

        Returns how much of it was known already. Raises PromptError if the prompt leaves no room.
        """
        job.room = min(job.sampling.max_tokens, self._decoder.limit - len(job.ids))
        if job.room < 1:
            raise PromptError(
                f"the prompt has {len(job.ids)} tokens, the limit is {self._decoder.limit}"
            )
        first, length = len(self._rows), len(job.ids)
        most = sum(other.sampling.n for other in self._jobs) + job.sampling.n
        self._cache.fit(most, length + job.room, used=first)
        known = self._prefixes.find(job.ids, self._cache, first)
        logits = self._decoder.read(job.ids[known:], self._cache, first, known)
        if length - known >= MIN_SHARED:
            self._prefixes.keep(job.ids, self._cache, first)
        n = 1 if job.explores else job.sampling.n
        job.random = seeded(job.sampling)
        job.answers = [Sampled() for _ in range(n)]
        job.logits = logits.expand(n, -1).clone()
        for number in range(n):
            if number:
                self._cache.copy(first, first + number, length)
            self._rows.append(Row(job, number, job.answers[number], length))
        self._jobs.append(job)
        self._take([job])
        return known

    def step(self) -> None:
        """Give every answer one more token; those that are done leave."""
        tokens = torch.tensor([row.sampled.ids[-1] for row in self._rows])
        lengths = torch.tensor([row.length for row in self._rows])
        logits = self._decoder.advance(tokens, self._cache, lengths)
        for at, row in enumerate(self._rows):
            row.length += 1
            row.job.logits[row.number] = logits[at]
        self._take(list(self._jobs))

    def forget(self, job: Job) -> None:
        """Let a request go that could not begin."""
        self._jobs = [other for other in self._jobs if other is not job]
        self._rows = [row for row in self._rows if row.job is not job]  # the newest: none moves

    def drop(self) -> list[Job]:
        """Forget everything and return what was under way, for who tells why."""
        jobs, self._jobs, self._rows = self._jobs, [], []
        return jobs

    def _take(self, jobs: Sequence[Job]) -> None:
        """Choose the next token of every answer of `jobs`, and let go what is done."""
        for job in jobs:
            tokens, logprobs = _next(job)
            for answer, token, logprob in zip(job.answers, tokens, logprobs, strict=True):
                if not answer.finish:
                    _append(job, answer, token, logprob)
        for job in jobs:
            if all(answer.finish for answer in job.answers):
                self._finish(job)
        for at in reversed(range(len(self._rows))):
            if self._rows[at].sampled.finish:
                self._remove(at)

    def _finish(self, job: Job) -> None:
        if job.explores and not job.departed:
            self._depart(job)
            if not all(answer.finish for answer in job.answers):
                return
        self._jobs.remove(job)
        job.done(job.answers)

    def _depart(self, job: Job) -> None:
        """Begin the alternatives where they leave the best answer: its beginning is read already."""
        job.departed = True
        best = job.answers[0]
        source = next(at for at, row in enumerate(self._rows) if row.job is job)
        places = sorted(range(len(best.ids)), key=lambda place: -job.departures[place][0])
        logits = job.logits
        for place in places[: job.sampling.n - 1]:
            logprob, token = job.departures[place]
            answer = Sampled(best.ids[:place], best.logprobs[:place])
            job.answers.append(answer)
            _append(job, answer, token, logprob)
            if answer.finish:
                continue
            length, target = len(job.ids) + place, len(self._rows)
            self._cache.copy(source, target, length)
            self._rows.append(Row(job, len(job.answers) - 1, answer, length))
        job.logits = logits[:1].expand(len(job.answers), -1).clone()

    def _remove(self, at: int) -> None:
        """Let an answer's row go; the last row takes its place."""
        last = len(self._rows) - 1
        if at != last:
            self._cache.copy(last, at, self._rows[last].length)
            self._rows[at] = self._rows[last]
        self._rows.pop()


def _next(job: Job) -> tuple[list[int], list[float]]:
    """Return the next token of each answer and its log-probability, finished answers included.

    They draw on, so that the same seed gives the others the same tokens.
    """
    scores = job.logits.log_softmax(-1)
    if job.explores:
        tokens = job.logits.argmax(-1)
        if not job.departed:
            job.departures.append(departure(scores[0], int(tokens[0]), job.eos_ids))
    else:
        tokens = choose(job.logits, greedy_rows(job.sampling), job.sampling, job.random)
    chosen = scores.gather(1, tokens[:, None])[:, 0]
    return tokens.tolist(), chosen.tolist()


def _append(job: Job, answer: Sampled, token: int, logprob: float) -> None:
    answer.ids.append(token)
    answer.logprobs.append(logprob)
    if token in job.eos_ids or (job.stopped is not None and job.stopped(answer.ids)):
        answer.finish = "stop"
    elif len(answer.ids) == job.room:
        answer.finish = "length"
