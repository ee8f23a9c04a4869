"""The model that is being served: one at a time, replaced without dropping a request."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from agent.serving.decoder import open_decoder
from agent.serving.generate import Sampling
from agent.serving.manifest import CheckpointError, read_json
from agent.serving.processor import Picture
from agent.serving.scheduler import Answer, Asked, Load, Scheduler, Served

log = logging.getLogger("agent.serving")


class Busy(Exception):
    """Too many requests wait already."""


class NotReady(Exception):
    """No model has been loaded yet."""


class Engine:
    """Answers in one thread, loads in another; a request keeps the model it began with.

    `slots` is how many answers are decoded together; `exact` computes in fp32 (see `llama.Weight`).
    """

    def __init__(
        self, state: Path, *, slots: int = 16, max_waiting: int = 64, exact: bool = False
    ) -> None:
        self.current: Served | None = None
        self.loading = ""
        self.error = ""
        self._state = state
        self._exact = exact
        self._most = slots + max_waiting
        self._asked = 0
        self._guard = threading.Lock()
        self._scheduler = Scheduler(self.served, slots=slots)
        self._opening = ThreadPoolExecutor(1, "open")
        self._opens: dict[tuple[str, str], Future[Served]] = {}

    def busyness(self) -> Load:
        """Return how busy the server is."""
        return self._scheduler.load()

    def served(self) -> Served:
        """Return what answers now; raises NotReady."""
        if self.current is None:
            raise NotReady(self.error or "the model is still being loaded")
        return self.current

    def submit(
        self,
        messages: Sequence[Mapping[str, Any]],
        sampling: Sampling,
        *,
        picture: Picture,
        stop: Sequence[str] = (),
    ) -> Future[Answer]:
        """Queue a request; the future raises PromptError. Raises Busy and NotReady at once."""
        self.served()
        with self._guard:
            if self._asked >= self._most:
                raise Busy(f"{self._asked} requests are being answered or wait already")
            self._asked += 1
        future: Future[Answer] = Future()
        future.add_done_callback(self._done)
        self._scheduler.submit(Asked(messages, sampling, picture, stop, future))
        return future

    def load(self, checkpoint: str, version: str) -> Future[Served]:
        """Open a checkpoint aside, then serve it as `version` and remember it for the next start.

        The same load asked for twice is one. The future raises CheckpointError; then nothing
        changes.
        """
        key = (checkpoint, version)
        with self._guard:
            if (running := self._opens.get(key)) is not None:
                return running
            future = self._opens[key] = self._opening.submit(self._load, checkpoint, version)
        future.add_done_callback(lambda _: self._forget(key))
        return future

    def start(self, checkpoint: str, version: str) -> None:
        """Begin with what was served last, else with `checkpoint`; returns at once."""
        remembered = self._state / "served.json"

        def open_first() -> None:
            if remembered.exists():
                try:
                    record = read_json(remembered)
                    self._load(str(record["checkpoint"]), str(record["version"]))
                    return
                except (CheckpointError, KeyError) as error:
                    log.error("what was served last can't be loaded: %s", error)
            try:
                self._load(checkpoint, version)
            except CheckpointError as error:
                log.error("%s", error)

        self._opening.submit(self._logged, open_first)

    def _load(self, checkpoint: str, version: str) -> Served:
        current = self.current  # the load before this one in the queue may have been the same
        if current and (current.checkpoint, current.version) == (checkpoint, version):
            return current
        self.loading = version or checkpoint
        try:
            decoder, processor, manifest = open_decoder(checkpoint, exact=self._exact)
            served = Served(
                checkpoint, version or manifest.version or checkpoint, decoder, processor, manifest
            )
            self._remember(served)
            self.current, self.error = served, ""
            log.info("serving %s from %s", served.version, checkpoint)
            return served
        except Exception as error:
            self.error = f"{version or checkpoint} could not be loaded: {error}"
            raise
        finally:
            self.loading = ""

    def _remember(self, served: Served) -> None:
        self._state.mkdir(parents=True, exist_ok=True)
        unfinished = self._state / f"served.json.{os.getpid()}"
        unfinished.write_text(
            json.dumps({"checkpoint": served.checkpoint, "version": served.version}) + "\n"
        )
        unfinished.replace(self._state / "served.json")

    def _done(self, _: object) -> None:
        with self._guard:
            self._asked -= 1

    def _forget(self, key: tuple[str, str]) -> None:
        with self._guard:
            self._opens.pop(key, None)

    def _logged(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:
            log.exception("the first model could not be loaded")
