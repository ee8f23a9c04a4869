"""Verbs of Calibration: start, run, cancel, resume, and finding what nobody runs."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from agent import rewards
from agent.policy import PolicyError
from annotation.session import pictures
from blobs import BlobError
from sandbox import families
from training import jobs
from training.errors import Refused, WrongState
from training.models import Calibration, Episode, RewardModel
from training.rewards.labelled import draw, sha256_of
from training.rewards.measures import measure
from training.rewards.reward_models import build, fingerprint
from trajectory import FormatError, Trajectory, from_dict

SIZE = 200
SILENT = timedelta(seconds=300)
"""A model may take long over one episode; after this its job is taken for dead."""
KEEP_S = 2.0
MAX_RAW = 4000

State = Calibration.State


def start(
    row: RewardModel,
    *,
    size: int = SIZE,
    families: Iterable[str] = (),
    seed: int = 0,
    by: User | None = None,
) -> Calibration:
    """Draw a labelled set and queue its judging. Raises TooFew."""
    labels = draw(size=size, families=families, seed=seed)
    with transaction.atomic():
        calibration = Calibration.objects.create(
            reward_model=row,
            fingerprint=fingerprint(row),
            labelled_sha256=sha256_of(labels),
            total=len(labels),
            answers=[{"episode": label.episode, "truth": label.truth} for label in labels],
            by=by,
        )
        _queue(calibration.pk)
    return calibration


def run(calibration_id: int) -> None:
    """Judge what is not judged yet, unless somebody else does. May run twice, or die at any line."""
    claim = _claim(calibration_id)
    if claim is None:
        return
    row = Calibration.objects.select_related("reward_model__deployment").get(pk=calibration_id)
    try:
        if fingerprint(row.reward_model) != row.fingerprint:
            raise WrongState("the reward model was changed after this calibration began")
        _judge(row, claim, build(row.reward_model))
    except (PolicyError, BlobError, FormatError, Refused) as error:
        _end(row, claim, State.FAILED, f"{type(error).__name__}: {error}")


def cancel(row: Calibration) -> Calibration:
    """Stop judging; raises WrongState where it has ended."""
    stopped = Calibration.objects.filter(pk=row.pk, state__in=Calibration.LIVE).update(
        state=State.CANCELLED, claim=F("claim") + 1, finished_at=timezone.now()
    )
    row.refresh_from_db()
    if not stopped:
        raise WrongState(f"calibration {row.pk} is {row.state} already")
    return row


@transaction.atomic
def resume(row: Calibration) -> Calibration:
    """Go on with what was not judged, after a failure; raises WrongState."""
    again = Calibration.objects.filter(pk=row.pk, state__in=(State.FAILED, State.CANCELLED)).update(
        state=State.QUEUED, error="", finished_at=None
    )
    row.refresh_from_db()
    if not again:
        raise WrongState(f"calibration {row.pk} is {row.state}: there is nothing to go on with")
    _queue(row.pk)
    return row


def find_lost() -> int:
    """Queue again what no job works on; returns how many."""
    silent = Q(heartbeat_at__lt=timezone.now() - SILENT)
    lost = Q(state=State.RUNNING) & silent | Q(state=State.QUEUED)
    found = list(Calibration.objects.filter(lost).values_list("pk", flat=True))
    for pk in found:
        _queue(pk)
    return len(found)


def trajectory_of(episode: Episode) -> Trajectory:
    """Return the record of an episode, without what its verifier said.

    Raises BlobError, FormatError.
    """
    record = json.loads(pictures.store().get(episode.trajectory))
    return dataclasses.replace(from_dict(record), reward=None)


def references_of(episode: Episode) -> tuple[str, ...]:
    """Return the right answers of an episode's task, one a line of its provenance's "answer"."""
    try:
        _, task = families.task(f"{episode.family}/{episode.task}")
    except families.UnknownTask:
        return ()
    return tuple(task.provenance.get("answer", "").splitlines())


def _judge(row: Calibration, claim: int, model: rewards.RewardModel) -> None:
    answers: list[dict[str, Any]] = [dict(answer) for answer in row.answers]
    kept = time.monotonic()
    for answer in answers:
        if "reward" in answer:
            continue
        episode = Episode.objects.get(pk=answer["episode"])
        said = model.judge(trajectory_of(episode), references=references_of(episode))
        answer |= _record(said)
        if time.monotonic() - kept > KEEP_S:
            kept = time.monotonic()
            if not _keep(row, claim, answers):
                return
    if _keep(row, claim, answers):
        _end(row, claim, State.DONE, "")


def _record(said: rewards.Judgement) -> dict[str, Any]:
    return {
        "reward": said.reward,
        "reason": said.reason[:MAX_RAW],
        "evidence": [[one.step, one.seen[:MAX_RAW]] for one in said.evidence],
        "raw": said.raw[:MAX_RAW],
        "version": said.version,
        "error": said.error,
    }


def _claim(calibration_id: int) -> int | None:
    """Take a calibration; None where it has ended or another job is at work."""
    free = Q(state=State.QUEUED) | Q(state=State.RUNNING, heartbeat_at__lt=timezone.now() - SILENT)
    taken = Calibration.objects.filter(free, pk=calibration_id).update(
        state=State.RUNNING, claim=F("claim") + 1, heartbeat_at=timezone.now()
    )
    if not taken:
        return None
    return Calibration.objects.values_list("claim", flat=True).get(pk=calibration_id)


def _keep(row: Calibration, claim: int, answers: Sequence[dict[str, Any]]) -> bool:
    """Keep the answers so far; False where the calibration is no longer ours."""
    counts = measure(answers).counts
    versions = sorted({answer["version"] for answer in answers if answer.get("version")})
    kept = Calibration.objects.filter(pk=row.pk, claim=claim, state=State.RUNNING).update(
        answers=list(answers),
        heartbeat_at=timezone.now(),
        version=", ".join(versions)[:300],
        **{name: count for name, count in counts.items() if name != "open"},
    )
    return bool(kept)


def _end(row: Calibration, claim: int, state: str, error: str) -> None:
    Calibration.objects.filter(pk=row.pk, claim=claim, state=State.RUNNING).update(
        state=state, error=error, finished_at=timezone.now()
    )


def _queue(calibration_id: int) -> None:
    """Queue the job after the commit; a broker that is away costs time, beat finds the row."""
    transaction.on_commit(
        lambda: jobs.calibrate.apply_async((calibration_id,), retry=False, expires=60),
        robust=True,
    )
