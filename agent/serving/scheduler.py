"""One thread that answers: requests join a batch between two tokens and leave it when they are done.

Models that only decode one request at a time (those that see) and a server of one slot take one
request after the other.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from agent.serving.batch import Batch, Job
from agent.serving.decoder import Decoder
from agent.serving.generate import Sampled, Sampling, generate
from agent.serving.llama import Llama
from agent.serving.manifest import Manifest
from agent.serving.processor import Picture, Processor

log = logging.getLogger("agent.serving")

WINDOW_S = 10.0
"""Over how many seconds the rates are taken."""


@dataclass(frozen=True, slots=True)
class Served:
    """One loaded checkpoint under the version it is served as."""

    checkpoint: str
    version: str
    decoder: Decoder
    processor: Processor
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Answer:
    """The answers to one request, and who gave them."""

    version: str
    processor: Processor
    prompt_ids: list[int]
    samples: list[Sampled]
    texts: list[str]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that waits, and the promise of its answer."""

    messages: Sequence[Mapping[str, Any]]
    sampling: Sampling
    picture: Picture
    stop: Sequence[str]
    future: Future[Answer]


@dataclass(frozen=True, slots=True)
class Load:
    """How busy the server is. Rates are over the last WINDOW_S seconds, the totals since the start.

    `batch` is the mean number of answers that got a token at one time.
    """

    slots: int
    busy: int
    waiting: int
    tokens_per_s: float
    batch: float
    requests: int
    tokens: int
    prompt_tokens: int
    shared_tokens: int


@dataclass(frozen=True, slots=True)
class _Ready:
    """A request whose prompt is encoded for one model, and that waits for room in its batch."""

    asked: Asked
    served: Served
    job: Job


class Scheduler:
    """Answers requests with the model that `current` returns when they are admitted."""

    def __init__(self, current: Callable[[], Served], *, slots: int) -> None:
        self._current, self._slots = current, slots
        self._turn = threading.Condition()
        self._queue: deque[Asked] = deque()
        self._ready: _Ready | None = None
        self._batches: list[tuple[Served, Batch]] = []
        self._busy = self._requests = self._tokens = 0
        self._prompt_tokens = self._shared_tokens = 0
        self._steps: deque[tuple[float, int]] = deque()  # when, and how many answers got a token
        threading.Thread(target=self._run, name="answer", daemon=True).start()

    def submit(self, asked: Asked) -> None:
        """Queue a request; its future raises PromptError."""
        with self._turn:
            self._queue.append(asked)
            self._turn.notify()

    def load(self) -> Load:
        """Return how busy the server is now."""
        now = time.monotonic()
        steps = [count for when, count in list(self._steps) if when > now - WINDOW_S]
        return Load(
            slots=self._slots,
            busy=self._busy,
            waiting=len(self._queue) + (self._ready is not None),
            tokens_per_s=round(sum(steps) / WINDOW_S, 1),
            batch=round(sum(steps) / len(steps), 2) if steps else 0.0,
            requests=self._requests,
            tokens=self._tokens,
            prompt_tokens=self._prompt_tokens,
            shared_tokens=self._shared_tokens,
        )

    # -- the thread --------------------------------------------------------------------------------

    @torch.inference_mode()
    def _run(self) -> None:
        while True:
            with self._turn:
                while not (self._queue or self._ready or self._running()):
                    self._turn.wait()
            self._admit()
            for _, batch in self._batches:
                if batch.rows:
                    self._step(batch)
            self._batches = [
                (served, batch)
                for served, batch in self._batches
                # An idle batch of the model that is served remembers prompts for the next ones.
                if batch.rows or served is self._current()
            ]
            self._busy = self._running()

    def _running(self) -> int:
        return sum(batch.rows for _, batch in self._batches)

    def _admit(self) -> None:
        """Let the first that waits begin, if there is room: one newcomer between two tokens."""
        if self._ready and self._ready.served is not self._current():
            self._ready = self._prepared(self._ready.asked)
        while self._ready is None and self._queue:
            asked = self._queue.popleft()
            if asked.future.set_running_or_notify_cancel():
                self._ready = self._prepared(asked)
        if self._ready is None:
            return
        job, batch = self._ready.job, self._batch(self._ready.served)
        if not batch.admits(job):
            return
        asked, self._ready = self._ready.asked, None
        try:
            shared = batch.add(job)
        except Exception as error:
            batch.forget(job)
            asked.future.set_exception(error)
            return
        self._prompt_tokens += len(job.ids)
        self._shared_tokens += shared
        self._stepped(len(job.answers))

    def _prepared(self, asked: Asked) -> _Ready | None:
        """Encode a request; None if it is answered already, or can't be."""
        served = self._current()
        try:
            processor = served.processor
            prompt = processor.prompt(asked.messages, asked.picture)
            stop = asked.stop
            stopped = (lambda ids: any(s in processor.decode(ids) for s in stop)) if stop else None
            if isinstance(served.decoder, Llama) and self._slots > 1:
                done = partial(self._answer, asked, served, prompt.ids)
                eos = processor.eos_ids
                return _Ready(
                    asked,
                    served,
                    Job(prompt.ids, asked.sampling, eos, stopped, done, asked.future.set_exception),
                )
            self._busy = asked.sampling.n
            self._prompt_tokens += len(prompt.ids)
            samples = generate(served.decoder, prompt, asked.sampling, processor.eos_ids, stopped)
            for place in range(max(len(sample.ids) for sample in samples)):
                self._stepped(sum(place < len(sample.ids) for sample in samples))
            self._answer(asked, served, prompt.ids, samples)
        except Exception as error:
            asked.future.set_exception(error)
        return None

    def _answer(
        self, asked: Asked, served: Served, prompt_ids: list[int], samples: list[Sampled]
    ) -> None:
        texts = [_cut(served.processor.decode(sample.ids), asked.stop) for sample in samples]
        self._requests += 1
        asked.future.set_result(
            Answer(served.version, served.processor, prompt_ids, samples, texts)
        )

    def _batch(self, served: Served) -> Batch:
        for other, batch in self._batches:
            if other is served:
                return batch
        assert isinstance(served.decoder, Llama)
        batch = Batch(served.decoder, self._slots)
        self._batches.append((served, batch))
        return batch

    def _step(self, batch: Batch) -> None:
        self._stepped(batch.rows)
        try:
            batch.step()
        except Exception as error:
            log.exception("a step of %d answers failed", batch.rows)
            for job in batch.drop():
                job.failed(error)

    def _stepped(self, count: int) -> None:
        now = time.monotonic()
        self._tokens += count
        self._steps.append((now, count))
        while self._steps[0][0] < now - WINDOW_S:
            self._steps.popleft()


def _cut(text: str, stop: Sequence[str]) -> str:
    ends = [text.index(s) for s in stop if s in text]
    return text[: min(ends)] if ends else text
