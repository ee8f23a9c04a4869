"""What an RL run's supervisor does at each look: episodes to the trainer, weights to the policy.

Everything here can be done twice and by whoever comes next. The last whole line of stream.jsonl says
which episodes the trainer has; the newest folder below served/ which weights the policy should have;
the rollout's version which it has.
"""

from __future__ import annotations

import fcntl
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from django.db.models import Min

from agent import deployments
from agent.models import Deployment
from training.data.stream_rows import Reader, append
from training.errors import WrongState
from training.models import Episode, Rollout, Run
from training.rollouts import episodes, rollouts
from training.runs.rundir import folders
from training.streaming import plan, servers, tokens
from training.streaming.tokens import Unlearnable

AT_ONCE = 50  # episodes per look, so that the rest of a look is never far
KEPT = 2  # served folders
RESUME_S = 5.0
BROKEN_SHARE = 0.2
BROKEN_LEAST = 8  # episodes, before a share says anything

State = Rollout.State


class Feeder:
    """Feeds one run; `tick` is called over and over while its trainer lives."""

    def __init__(self, run: Run, directory: Path) -> None:
        assert run.rollout_id is not None and run.base is not None
        self.run, self.directory = run, directory
        self.own = plan.is_own(run)
        self._cursor, self._size, self._ended = 0, -1, False
        self._resumed_at = 0.0

    def tick(self) -> None:
        """Carry what is new both ways.

        Raises Unlearnable and servers.CantServe, which say why the run can't go on, and BlobError.
        """
        rollout = Rollout.objects.select_related("deployment").get(pk=self.run.rollout_id)
        if rollout.state == State.FAILED:
            raise Unlearnable(f"its rollout {rollout.name} failed: {rollout.error}")
        if not rollout.ended:
            self._serve(rollout)
        # Before what broke and what is finished is counted: nothing comes after its end.
        rollout.refresh_from_db(fields=["state", "total"])
        if self._replace_broken(rollout):
            rollout.refresh_from_db(fields=["state", "total"])
        self._feed(rollout)

    # -- weights ---------------------------------------------------------------------------------

    def _serve(self, rollout: Rollout) -> None:
        """Give the policy server the newest weights, and let the episodes go on that waited for it."""
        update, version, uri = self.newest()
        try:
            self._push(rollout.deployment, uri, version)
        except servers.Loading:
            return
        except servers.NotUp as error:
            # Episodes wait where they are; the worker pauses the rollout if it takes long.
            rollouts.still_paused(rollout, reason=f"its policy server is not up: {error}")
            return
        self._forget_older(update)
        try:
            if update > rollout.version:
                rollouts.advance(rollout, to=update)
            now = time.monotonic()
            if rollout.state == State.PAUSED and rollout.error and now > self._resumed_at:
                # Paused for a reason, which is over; a person's pause has none and stays.
                self._resumed_at = now + RESUME_S
                rollouts.resume(rollout)
        except WrongState:
            pass  # somebody was faster; the next look sees it

    def _push(self, deployment: Deployment, uri: str, version: str) -> None:
        if self.own:
            address = servers.ensure(self.directory / "server", uri, version)
            deployments.serves(deployment, base_url=address, version=version)
        else:
            if (deployment.checkpoint_uri, deployment.version) != (uri, version):
                deployments.point_at(deployment, checkpoint_uri=uri, version=version)
            address = deployment.base_url.rstrip("/").removesuffix("/v1")
            servers.load(address, uri, version, token=deployments.token_of(deployment))

    def newest(self) -> tuple[int, str, str]:
        """Return the newest weights: after how many updates, their version, and where they lie."""
        found = folders(self.directory / "served") or folders(self.directory / "checkpoints")
        assert self.run.base is not None
        update, uri = max(found.items(), default=(0, Path(self.run.base.uri)))
        where = str(uri) if found else self.run.base.uri
        return update, f"{self.run.name}-step-{update}", where

    def _forget_older(self, newest: int) -> None:
        served = folders(self.directory / "served")
        for update in sorted(step for step in served if step <= newest)[:-KEPT]:
            shutil.rmtree(served[update], ignore_errors=True)

    # -- episodes --------------------------------------------------------------------------------

    def _replace_broken(self, rollout: Rollout) -> int:
        """Have others played instead of episodes that broke for good; returns how many.

        Raises Unlearnable.
        """
        wanted = self.run.config["updates"] * self.run.config["batch"]
        broken = rollout.episodes.filter(state=Episode.State.BROKEN).count()
        if broken <= rollout.total - wanted:
            return 0
        done = rollout.episodes.filter(state=Episode.State.DONE).count()
        if broken > BROKEN_LEAST and broken > BROKEN_SHARE * (broken + done):
            raise Unlearnable(
                f"the environments of {broken} of {broken + done} episodes broke: the page of "
                f"{rollout.name} says why; choose other tasks, or resume once they work"
            )
        first = rollout.episodes.order_by().values("family", "task").annotate(first=Min("pk"))
        tasks = [(row["family"], row["task"]) for row in first.order_by("first")]
        group, seed = self.run.config["group"], self.run.config["seed"]

        def more(after: int, count: int) -> Iterable[tuple[str, str, int, int]]:
            return plan.episodes_of(tasks, count, group=group, seed=seed, after=after)

        return rollouts.replace_broken(rollout, more, wanted=wanted)

    def _feed(self, rollout: Rollout) -> None:
        if self._ended:
            return
        # Whoever had the run before may still be writing: one at a time, each looks where it stands.
        with (self.directory / "stream.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._look()
            if self._ended:
                return
            rows = episodes.finished(after=self._cursor, limit=AT_ONCE, rollout=rollout)
            over = rollout.ended and not rows
            if not rows and not over:
                return
            append(self.directory, tokens.episodes(rollout, rows, self.directory), end=over)
            self._cursor = rows[-1].sequence or 0 if rows else self._cursor
            self._ended = over
            self._size = self._stream_size()

    def _look(self) -> None:
        """Find the cursor where the file is not as we left it."""
        if self._stream_size() == self._size:
            return
        reader = Reader(self.directory)
        self._cursor = 0
        for episode in reader.new():
            self._cursor = episode.sequence
        self._ended, self._size = reader.ended, self._stream_size()

    def _stream_size(self) -> int:
        path = self.directory / "stream.jsonl"
        return path.stat().st_size if path.exists() else 0


def close(run: Run, directory: Path, state: str) -> None:
    """Stop what an RL run had beside its trainer, before it becomes `state`.

    A run that succeeded needs no episode any more; any other may go on later, so its episodes wait.
    """
    if plan.is_own(run):
        servers.stop(directory / "server")
    if run.rollout_id is None:
        return
    rollout = Rollout.objects.get(pk=run.rollout_id)
    try:
        if state == Run.State.SUCCEEDED:
            rollouts.drain(rollout)
        else:
            rollouts.pause(rollout, reason=f"its run {run.name} is {state}")
    except WrongState:
        pass  # it has ended, or waits already
