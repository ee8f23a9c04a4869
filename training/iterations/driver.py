"""What turns the flywheel: one look at an iteration, and the step that follows from it.

A pure state machine over rows. Whatever a look does, it does in one transaction under the iteration's
lock, the phase's own row included; a process that dies leaves either all of it or nothing, and the
next look goes on. Two looks at once do nothing twice: the second one finds the lock taken.
"""

from __future__ import annotations

import datetime as dt
import logging
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from training.errors import Refused
from training.iterations import iterations, serving
from training.iterations.learning import newest
from training.iterations.phase import Look, Phase
from training.iterations.phases import (
    ORDER,
    PHASES,
    TRAINS,
    model_of,
)
from training.iterations.playing import unpause
from training.models import Iteration, Rollout, Run
from training.runs import runs

log = logging.getLogger(__name__)
State = Iteration.State
PREPARING = 0x17E8A7
"""The advisory locks of iterations; the second number is the iteration's."""


def advance_all() -> None:
    """Look at every live iteration, and stop the servers of those that need none any more."""
    live = Iteration.objects.filter(state=State.RUNNING).order_by("pk")
    for pk in list(live.values_list("pk", flat=True)):
        go(pk)
    serving.stop_unwanted()


def go(iteration_id: int) -> None:
    """Take an iteration as far as it goes now: phases that are left out end at once."""
    for _ in range(2 * len(ORDER)):
        if not advance(iteration_id):
            break


def advance(iteration_id: int) -> bool:
    """Make the next step of an iteration, if there is one; returns whether anything changed.

    What can't be done ends the iteration with the reason; a person can have it tried again.
    """
    row = Iteration.objects.filter(pk=iteration_id, state=State.RUNNING).first()
    if row is None:
        return False
    phase = PHASES[row.phase]
    try:
        return _step(row, phase)
    except DatabaseError:
        raise  # nothing was changed; the next look may find the database well
    except Exception as error:
        told = _is_told(error)
        if not told:
            log.exception("iteration %s, %s", row.name, row.phase)
        return _fail(
            iteration_id, phase, str(error) if told else f"{type(error).__name__}: {error}"
        )


def _step(row: Iteration, phase: Phase) -> bool:
    """Begin the phase, or look at it; what may take long is done before the row's lock is taken."""
    begun = _begun(row, phase)
    wanted = None if begun and not phase.link else model_of(row)
    ready = wanted is None or serving.ready(row, wanted)
    if begun:
        with transaction.atomic():
            locked = _locked(row.pk, phase)
            return locked is not None and _look(locked, phase, ready=ready)
    prepared: Any = None
    # Waiting for the server is part of the phase that needs it, as is what it prepares.
    since = row.server_since if phase.serves and row.server_since else timezone.now()
    skipped = phase.skip(row)
    if not (skipped or ready):
        return False
    with transaction.atomic():
        if not skipped:
            if not _alone(row.pk):
                return False
            prepared = phase.prepare(row)
        locked = _locked(row.pk, phase)
        return locked is not None and _begin(locked, phase, prepared, since)


def _begun(row: Iteration, phase: Phase) -> bool:
    """Whether the phase has begun; one that is tried again has not."""
    return row.phases.get(phase.name, {}).get("state", "again") != "again"


def _alone(pk: int) -> bool:
    """Whether nobody else prepares a phase of this iteration; holds to the transaction's end."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_try_advisory_xact_lock(%s, %s)", (PREPARING, pk % 2**31))
        return bool(cursor.fetchone()[0])


def _locked(pk: int, phase: Phase) -> Iteration | None:
    """Return the iteration under its lock; None where somebody else has it or has gone on."""
    rows = Iteration.objects.select_for_update(skip_locked=True, of=("self",))
    return rows.filter(pk=pk, state=State.RUNNING, phase=phase.name).first()


def _begin(row: Iteration, phase: Phase, prepared: object, since: dt.datetime) -> bool:
    if _begun(row, phase):
        return False  # another look was faster
    begun = since.isoformat(timespec="seconds")
    record = {**row.phases.get(phase.name, {}), "begun_at": begun}
    if reason := phase.skip(row):
        row.phases[phase.name] = {**record, "state": "skipped", "ended_at": _now(), "note": reason}
        _go_on(row)
        return True
    row.phases[phase.name] = {**record, "state": "running"}
    phase.begin(row, prepared)
    row.save()
    return True


def _look(row: Iteration, phase: Phase, *, ready: bool) -> bool:
    record = row.phases[phase.name]
    if phase.link:
        _wake(row, phase, ready=ready)
    seen = phase.look(row)
    if seen.state == "failed":
        _failed(row, phase, seen.note)
        return True
    if seen.state == "going":
        if record.get("note") == seen.note:
            return False
        record["note"] = seen.note
        row.save(update_fields=["phases"])
        return False
    row.phases[phase.name] = _ended(record, seen)
    if phase.name in TRAINS:
        row.candidate = newest(getattr(row, phase.link))
    if phase.name == Iteration.Phase.VALUE:
        row.critic = newest(row.value_run) if row.value_run else None
    _go_on(row)
    return True


def _wake(row: Iteration, phase: Phase, *, ready: bool) -> None:
    """Let what a pause stopped go on, and what waited for the server."""
    child = getattr(row, phase.link)
    rollout = child if isinstance(child, Rollout) else getattr(child, "rollout", None)
    if isinstance(child, Run):
        if row.resuming and child.state == Run.State.CANCELLED:
            runs.resume(child)
        if row.resuming and child.state != Run.State.CANCELLING:
            row.resuming = False
            row.save(update_fields=["resuming"])
        child.refresh_from_db()
    elif rollout is not None and ready:
        unpause(rollout)


def _ended(record: dict[str, Any], seen: Look) -> dict[str, Any]:
    return {
        **record, "state": "done", "ended_at": _now(), "note": seen.note, "figures": seen.figures,
    }  # fmt: skip


def _go_on(row: Iteration) -> None:
    """Go to the next phase; after the last one the iteration is done, and perhaps followed."""
    row.phase = ORDER[ORDER.index(row.phase) + 1]
    if row.phase == Iteration.Phase.DONE:
        row.state, row.finished_at = State.DONE, timezone.now()
    row.save()
    if row.server_host and model_of(row) is None:
        # Before a run is queued: where one worker does both, the server would outlast the run.
        transaction.on_commit(lambda: serving.ask(row), robust=True)
    if row.state == State.DONE and row.remaining:
        try:
            with transaction.atomic():
                iterations.follow(row, remaining=row.remaining - 1)
        except Refused as error:
            # This one is done all the same.
            row.error, row.remaining = f"No iteration follows: {error}", 0
            row.save(update_fields=["error", "remaining"])


def _fail(pk: int, phase: Phase, reason: str) -> bool:
    with transaction.atomic():
        row = _locked(pk, phase)
        if row is None:
            return False
        _failed(row, phase, reason)
    return True


def _failed(row: Iteration, phase: Phase, reason: str) -> None:
    record = row.phases.get(phase.name, {})
    row.phases[phase.name] = {**record, "state": "failed", "ended_at": _now(), "note": reason}
    row.state, row.error, row.finished_at = State.FAILED, reason, timezone.now()
    row.save()


def _is_told(error: Exception) -> bool:
    """Whether the error's message was written for the person who asked."""
    from agent.policy import PolicyError
    from blobs import BlobError

    return isinstance(error, Refused | PolicyError | BlobError | serving.ServerFailed)


def _now() -> str:
    return timezone.now().isoformat(timespec="seconds")
