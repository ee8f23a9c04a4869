"""Which episodes an update learns from: chosen once, written down before, repeated after a kill.

`updates.jsonl` has one line per update, appended and on disk before a weight moves:
{"update": k, "episodes": [ids], "version": "RUN-step-k"}. A trainer that was killed goes on from its
newest state, repeats the updates written after it with the very same episodes, and then chooses new
ones. So no episode is lost and none is used twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from training.data.stream_rows import Reader, TokenEpisode
from training.runs.rundir import RunDirError, write_atomic

LEDGER = "updates.jsonl"


@dataclass(frozen=True, slots=True)
class Update:
    """One update (from 1) and the ids of its episodes, in order."""

    update: int
    episodes: list[str]
    version: str


class Ledger:
    """The updates of a run so far."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / LEDGER
        self.updates = self._read()

    def append(self, update: Update) -> None:
        """Write the next update down; it is on disk when this returns."""
        if update.update != len(self.updates) + 1:
            raise RunDirError(
                f"{self._path} has {len(self.updates)} updates, the next is not {update.update}"
            )
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(update)) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.updates.append(update)

    def restore(self, records: Iterable[dict[str, object]]) -> None:
        """Take over what a state remembers, where the file has less: it was left on another machine."""
        known = [Update(**record) for record in records]  # type: ignore[arg-type]
        if len(known) > len(self.updates):
            self.updates = known
            self._write()

    def _read(self) -> list[Update]:
        """Return the whole lines; a line that a kill cut short is dropped from the file."""
        if not self._path.exists():
            return []
        lines = self._path.read_text(encoding="utf-8").splitlines(keepends=True)
        found = []
        for number, line in enumerate(lines, start=1):
            if not line.endswith("\n"):
                break
            try:
                found.append(Update(**json.loads(line)))
            except (ValueError, TypeError) as error:
                raise RunDirError(f"{self._path}:{number}: {error}") from error
        if len(found) < len(lines):
            write_atomic(self._path, "".join(lines[: len(found)]))
        return found

    def _write(self) -> None:
        write_atomic(self._path, "".join(json.dumps(asdict(u)) + "\n" for u in self.updates))


class Pool:
    """The episodes that came and were not used yet, oldest first."""

    def __init__(self, directory: Path, used: Iterable[str]) -> None:
        self._reader = Reader(directory)
        self._seen = set(used)
        self.waiting: dict[str, TokenEpisode] = {}

    @property
    def ended(self) -> bool:
        """Whether nothing will be added any more."""
        return self._reader.ended

    def look(self) -> None:
        """Take in what the stream has gained."""
        for episode in self._reader.new():
            if episode.id not in self._seen:
                self._seen.add(episode.id)
                self.waiting[episode.id] = episode

    def has(self, ids: Sequence[str]) -> bool:
        return all(name in self.waiting for name in ids)

    def take(self, ids: Sequence[str]) -> list[TokenEpisode]:
        """Return these episodes; they are gone from the pool."""
        return [self.waiting.pop(name) for name in ids]

    def choose(self, batch: int, *, group: int = 1, admitted: int = 0) -> list[str]:
        """Return the ids of the next batch, oldest first; none while it isn't there.

        With `group` above 1 a batch has whole groups: those that are complete, in the order in which
        they became so. Once `admitted` episodes have come in all, those learnt from included, none
        will follow before an update: groups that lack members are taken too. A stream that has ended
        gives a shorter last batch.
        """
        waiting = list(self.waiting.values())
        last = self.ended or bool(admitted and len(self._seen) >= admitted)
        if group == 1:
            ready = waiting if len(waiting) >= batch or self.ended else []
            return [episode.id for episode in ready[:batch]]
        members: dict[str, list[str]] = {}
        for episode in waiting:
            members.setdefault(episode.group, []).append(episode.id)
        order = {episode.id: n for n, episode in enumerate(waiting)}
        complete = [ids for ids in members.values() if len(ids) >= group]
        ready_groups = sorted(complete, key=lambda ids: order[ids[group - 1]])
        if last:
            ready_groups += [ids for ids in members.values() if len(ids) < group]
        chosen: list[str] = []
        for ids in ready_groups:
            if len(chosen) >= batch:
                break
            chosen += ids
        return chosen if last or len(chosen) >= batch else []
