"""A run over a stream of episodes: waits for a batch, has it learnt from, serves and keeps the weights.

The order of what is written is what makes it safe to kill at any moment: the update's episodes
(updates.jsonl), then the weights to be served (served/step-k), then its figures, and every few updates
the state to go on from, the actor's checkpoint and the critic's.
"""

from __future__ import annotations

import dataclasses
import math
import os
import time
from collections.abc import Callable

from accelerate.utils import broadcast_object_list

from training.data.stream_rows import TokenEpisode
from training.runs.rundir import RunDir, Status
from training.trainers import states
from training.trainers.job import Refused, Stop
from training.trainers.learner import Learner
from training.trainers.updates import Ledger, Pool, Update
from training.weights.fingerprint import files_of, fingerprint

LOOK_S = 0.2  # between two looks at the stream
WORD_S = 2.0  # between two words about waiting

One = Callable[[int, list[TokenEpisode]], dict[str, float]]
"""(update from 1, its episodes) -> its figures; the weights have moved when it returns."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """How a run takes from its stream: `group` above 1 keeps the members of a group together."""

    name: str
    updates: int
    batch: int
    group: int
    staleness: int
    save_every: int


class Streamed:
    """A run over its stream: `done` updates are in the weights, `ledger` may know of more."""

    def __init__(
        self, run: RunDir, pace: Pace, policy: Learner, critic: Learner | None, one: One
    ) -> None:
        self.run, self.pace, self.policy, self.critic, self.one = run, pace, policy, critic, one
        self.writes = policy.accelerator.is_main_process
        self.ledger = Ledger(run.path)
        self.done = self.saved = 0
        used: list[str] = []
        # What the critic explained of episodes that it had not learnt from yet, where that is known.
        self.quality: float | None = None
        if state := states.newest(run):
            policy.restore(state["policy"])
            if critic is not None:
                critic.restore(state["critic"])
            self.done, self.quality = int(state["step"]), state["quality"]
            used = [name for record in state["updates"] for name in record["episodes"]]
            if self.writes:
                self.ledger.restore(state["updates"])
            self.keep()  # a kill may have left the actor without its critic
        self.pool = Pool(run.path, used)
        self.said = 0.0
        if self.writes:
            learnt = policy.size, critic.size if critic else 0
            print("{:,} weights of the policy are trained, {:,} of the critic".format(*learnt))
            run.cut_metrics(self.done)
            self.say()

    def run_to_the_end(self, stop: Stop) -> Status:
        pace, begun, first = self.pace, time.monotonic(), self.done
        state = "succeeded"
        while self.done < pace.updates:
            waiting = time.monotonic()
            ids = self.next_ids(stop)
            if isinstance(ids, str):
                state = ids
                break
            waited = time.monotonic() - waiting
            k = self.done + 1
            figures = self.one(k, self.pool.take(ids))
            self.quality = figures.get("explained_variance", self.quality)
            self.done = k
            self.serve()
            now = time.monotonic()
            if self.writes:
                spent, read = now - waiting - waited, figures.pop("read", 0.0)
                self.run.append_metrics({
                    "step": k, "version": k, "time": time.time(), **_finite(figures),
                    "waited_s": round(waited, 3), "update_s": round(spent, 3),
                    "tokens_per_s": round(read / spent, 1),
                    "eta_s": round((now - begun) / (k - first) * (pace.updates - k), 1),
                })  # fmt: skip
            if (pace.save_every and k % pace.save_every == 0) or k == pace.updates:
                self.keep()
            self.say()
        if self.done > self.saved:
            self.keep()
        if not self.done and state == "succeeded":
            raise Refused("the stream ended without an episode: nothing was learnt")
        return Status(state, self.done, pace.updates, checkpoint=self.newest)  # type: ignore[arg-type]

    def next_ids(self, stop: Stop) -> list[str] | str:
        """Wait for the next batch; returns its ids, or how the run ends: all processes the same."""
        pace, k = self.pace, self.done + 1
        while True:
            self.pool.look()
            word: list[str] | str = ""
            if self.writes:
                if stop.asked:
                    word = "cancelled"
                elif k <= len(self.ledger.updates):
                    ids = self.ledger.updates[k - 1].episodes
                    if self.pool.has(ids):
                        word = ids
                    elif self.pool.ended:
                        raise Refused(f"update {k} used episodes that the stream lacks now")
                elif ids := self.pool.choose(
                    pace.batch, group=pace.group,
                    admitted=(pace.staleness + k) * pace.batch,
                ):  # fmt: skip
                    self.ledger.append(Update(k, ids, f"{pace.name}-step-{k}"))
                    word = ids
                elif self.pool.ended:
                    word = "succeeded"
            [word] = broadcast_object_list([word])
            if isinstance(word, list):
                while not self.pool.has(word):  # another process may see the file a moment later
                    self.pool.look()
                return word
            if word:
                return word
            if time.monotonic() - self.said > WORD_S:
                self.say()
            time.sleep(LOOK_S)

    def serve(self) -> None:
        """Write the weights for the policy server, which clears those that it has replaced.

        A repeated update writes nothing where newer weights are served.
        """
        folder, k = self.run.path / "served", self.done
        folder.mkdir(exist_ok=True)
        there = [int(path.name.removeprefix("step-")) for path in folder.glob("step-*")]
        if max(there, default=0) < k:
            self.policy.write(folder / f"step-{k}", f"{self.pace.name}-step-{k}")

    def keep(self) -> None:
        """Write state and checkpoints of now. The actor's folder comes last but for its critic's name."""
        k, pace, critic = self.done, self.pace, self.critic
        state = {
            "policy": self.policy.state(), "quality": self.quality,
            "critic": critic.state() if critic is not None else {},
            "updates": [dataclasses.asdict(u) for u in self.ledger.updates[:k]],
        }  # fmt: skip
        if self.writes:
            states.save(self.run, k, state)
        self.policy.write(self.run.checkpoint(k), f"{pace.name}-step-{k}")
        if critic is not None:
            if self.writes:
                actor = fingerprint(files_of(self.run.checkpoint(k)))
                critic.manifest = dataclasses.replace(
                    critic.manifest, actor=actor, explained_variance=self.quality
                )
            folder = self.run.path / "critics" / f"step-{k}"
            folder.parent.mkdir(exist_ok=True)
            critic.write(folder, f"{pace.name}-critic-step-{k}")
        self.saved = k

    @property
    def newest(self) -> str:
        return f"checkpoints/step-{self.saved}" if self.saved else ""

    def say(self) -> None:
        """Say where the run stands: a supervisor knows by it that the trainer lives."""
        if not self.writes:
            return
        self.said = time.monotonic()
        total = self.pace.updates
        self.run.write_status(
            Status("running", self.done, total, os.getpid(), checkpoint=self.newest)
        )


def _finite(figures: dict[str, float]) -> dict[str, float]:
    """Return the figures that JSON can hold, rounded."""
    return {name: round(value, 6) for name, value in figures.items() if math.isfinite(value)}
