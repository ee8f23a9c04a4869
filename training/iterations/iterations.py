"""Verbs of Iteration: begin, follow, pause, resume, retry, cancel, repeat."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from agent.models import Deployment
from training import jobs
from training.errors import BadConfig, Mismatch, NameTaken, Refused, WrongState
from training.evaluations import evaluations
from training.iterations import config as configs
from training.iterations.config import MOST
from training.iterations.phases import PHASES
from training.iterations.playing import seeds_of
from training.models import Checkpoint, Dataset, Evaluation, Iteration, Rollout, Run
from training.rollouts import rollouts
from training.runs import runs
from training.runs.inputs import root
from training.weights import promotions

State = Iteration.State
Child = Rollout | Evaluation | Run


def begin(
    *,
    deployment: Deployment,
    config: Mapping[str, object],
    by: User | None,
    base: Checkpoint | None = None,
    server: Deployment | None = None,
    name: str = "",
    count: int = 1,
) -> Iteration:
    """Begin `count` iterations in a row, the first one now.

    M(t) is what `deployment` serves, and what a better candidate is promoted to. Without a `base`
    the training starts from the weights that M(t) goes back to; without a `server` the iterations
    start a policy server of their own. Raises BadConfig naming each field that is wrong, and
    NameTaken.
    """
    errors: dict[str, str] = {}
    values = None
    try:
        values = configs.read(config)
    except BadConfig as error:
        errors |= error.errors
    if values is not None:
        known = set(Dataset.objects.filter(erased_at=None).values_list("name", flat=True))
        if unknown := [one for one, _ in values.mixed if one not in known]:
            errors["mix"] = f"there is no dataset called {unknown[0]!r} to mix in"
    if not 1 <= count <= MOST:
        errors["count"] = f"{count} is not between 1 and {MOST}"
    if server is not None and (why := _no_server(server, deployment)):
        errors["server"] = why
    policy = promotions.in_force(deployment)
    if policy is None:
        errors["deployment"] = (
            f"{deployment.name} serves {deployment.version or 'nothing'}, which is no checkpoint here: "
            "promote one to it first"
        )
    else:
        base = base or root(policy)
        errors |= _wrong(deployment, policy, base)
        if server is not None and not errors.keys() & {"server", "deployment"}:
            try:
                promotions.refuse_mismatch(policy, server)
            except Mismatch as error:
                errors["server"] = str(error)
    if errors:
        raise BadConfig(errors)
    assert policy is not None and base is not None and values is not None
    row = Iteration(
        name=name or free_name(), deployment=deployment, policy=policy, base=base,
        config=values.as_dict(), first_seed=values.first_seed, remaining=count - 1, created_by=by,
        server=server, own_server=server is None,
    )  # fmt: skip
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            _soon()
    except IntegrityError as error:
        raise NameTaken(
            f"there is an iteration called {row.name!r}: choose another name"
        ) from error
    return row


def follow(row: Iteration, *, remaining: int = 0, by: User | None = None) -> Iteration:
    """Begin the next iteration of a chain from what is in force now; raises Refused.

    It takes fresh seeds, and the chain's policy server. A CT checkpoint that is in a promoted
    candidate is what training starts from then. Call it in a transaction; a second call raises
    WrongState, as an iteration is followed once.
    """
    if Iteration.objects.filter(previous=row).exists():
        raise WrongState(f"{row.name} is followed by {row.following.name} already")
    deployment = Deployment.objects.get(pk=row.deployment_id)
    policy = promotions.in_force(deployment)
    if policy is None:
        raise WrongState(
            f"{deployment.name} serves {deployment.version}, which is no checkpoint here"
        )
    base = row.base
    if row.promotion is not None and row.ct_run is not None:
        base = row.ct_run.checkpoints.order_by("-step").first() or base
    errors = _wrong(deployment, policy, base)
    if errors:
        raise BadConfig(errors)
    following = Iteration.objects.create(
        name=free_name(), number=row.number + 1, previous=row, remaining=remaining,
        deployment=deployment, policy=policy, base=base, config=row.config,
        first_seed=seeds_of(row)[-1] + 1, server=row.server, own_server=row.own_server,
        server_host=row.server_host,
        created_by=by or row.created_by,
    )  # fmt: skip
    # The server is the follower's now: nobody stops it for the one that has ended.
    row.server_host = ""
    row.save(update_fields=["server_host"])
    _soon()
    return following


def repeat(row: Iteration, *, count: int = 1, by: User | None = None) -> Iteration:
    """Add `count` iterations: after a live one they follow by themselves, else the first begins now.

    Returns the live one. Raises WrongState where another one follows already.
    """
    if not 1 <= count <= MOST:
        raise BadConfig({"count": f"{count} is not between 1 and {MOST}"})
    with transaction.atomic():
        locked = _lock(row)
        if not locked.ended:
            locked.remaining = min(MOST, locked.remaining + count)
            locked.save(update_fields=["remaining"])
            return locked
        return follow(locked, remaining=count - 1, by=by)


def pause(row: Iteration) -> Iteration:
    """Begin no phase any more, and pause what the phase made; raises WrongState.

    A run writes a checkpoint and ends; it goes on from there with the iteration.
    """
    with transaction.atomic():
        locked = _lock(row)
        _require(locked, (State.RUNNING,), "paused")
        child = child_of(locked)
        if isinstance(child, Run):
            _quietly(runs.cancel, child)
        elif child is not None:
            _quietly(rollouts.pause, _rollout(child))
        locked.state = State.PAUSED
        locked.save(update_fields=["state"])
    return locked


def resume(row: Iteration) -> Iteration:
    """Go on from a pause; raises WrongState."""
    with transaction.atomic():
        locked = _lock(row)
        _require(locked, (State.PAUSED,), "resumed")
        child = child_of(locked)
        if isinstance(child, Run):
            locked.resuming = True  # it may still be writing its checkpoint: the driver resumes it
        elif child is not None:
            _quietly(rollouts.resume, _rollout(child))
        locked.state = State.RUNNING
        locked.save(update_fields=["state", "resuming"])
        _soon()
    return locked


def retry(row: Iteration) -> Iteration:
    """Try the phase again that failed; raises WrongState where none did.

    A run goes on from its last checkpoint; episodes, which can't be played on, are asked for anew.
    """
    with transaction.atomic():
        locked = _lock(row)
        _require(locked, (State.FAILED,), "tried again")
        if following := Iteration.objects.filter(previous=locked).first():
            raise WrongState(f"{locked.name} is followed by {following.name}: go on with that one")
        phase = PHASES[locked.phase]
        record = locked.phases.get(phase.name, {})
        child = child_of(locked)
        if isinstance(child, Run) and child.state in (Run.State.FAILED, Run.State.CANCELLED):
            runs.resume(child)
            record |= {"state": "running", "note": ""}
            record.pop("ended_at", None)
        else:
            tried = {"name": getattr(child, "name", ""), "note": record.get("note", "")}
            record = {"state": "again", "tries": [*record.get("tries", ()), tried]}
            if phase.link:
                setattr(locked, phase.link, None)
            if child is not None:
                _stop(child)  # else it would play on, with whatever its server loads next
        locked.phases[phase.name] = record
        locked.state, locked.error, locked.finished_at = State.RUNNING, "", None
        locked.server_since, locked.server_trouble, locked.server_refuses = None, "", ""
        locked.save()
        _soon()
    return locked


def cancel(row: Iteration) -> Iteration:
    """End it now, with what its phase made, and begin none after it; raises WrongState.

    What it collected stays; a run writes a checkpoint.
    """
    with transaction.atomic():
        locked = _lock(row)
        _require(locked, (State.RUNNING, State.PAUSED, State.FAILED), "cancelled")
        child = child_of(locked)
        if child is not None:
            _stop(child)
        locked.state, locked.finished_at, locked.remaining = State.CANCELLED, timezone.now(), 0
        locked.save(update_fields=["state", "finished_at", "remaining"])
        _soon()  # it stops the server
    return locked


def child_of(row: Iteration) -> Child | None:
    """Return what the current phase made: a rollout, an evaluation or a run; None where nothing."""
    link = PHASES[row.phase].link if row.phase in PHASES else ""
    return getattr(row, link) if link else None


def free_name() -> str:
    """Return a name that no iteration has."""
    taken = set(Iteration.objects.values_list("name", flat=True))
    return next(name for n in range(1, len(taken) + 2) if (name := f"iteration-{n}") not in taken)


def _wrong(deployment: Deployment, policy: Checkpoint, base: Checkpoint) -> dict[str, str]:
    try:
        promotions.refuse_mismatch(policy, deployment)
    except Mismatch as error:
        return {"deployment": str(error)}
    for field, checkpoint in (("deployment", policy), ("base", base)):
        if checkpoint.erased_at:
            return {field: f"{checkpoint.version} was trained on data that was deleted since"}
        if checkpoint.role != Checkpoint.Role.POLICY:
            return {field: f"{checkpoint.version} is a critic: it can't act"}
    for key in ("dialect", "observation"):
        if policy.manifest.get(key) != base.manifest.get(key):
            return {
                "base": f"{base.version} and {policy.version} differ in their {key}: what M(t) does "
                "would not be data for it"
            }
    return {}


def _no_server(server: Deployment, deployment: Deployment) -> str:
    """Return why the iterations can't play with `server`, "" where they can."""
    if server.kind != Deployment.Kind.LOCAL or not server.base_url:
        return f"{server.name} has no policy server with an address of its own"
    if server.is_partner or server.pk == deployment.pk:
        return f"{server.name} is beside the annotators: its weights would change under them"
    address = server.base_url
    if Deployment.objects.filter(base_url=address).exclude(pk=server.pk).exists():
        return f"another deployment answers at {address} too: its weights would change"
    busy = Iteration.objects.filter(server=server, state__in=Iteration.LIVE).first()
    return f"{busy.name} plays with {server.name} at the moment" if busy else ""


def _require(row: Iteration, states: tuple[str, ...], what: str) -> None:
    if row.state not in states:
        raise WrongState(f"{row.name} is {row.state}: it can't be {what}")


def _stop(child: Child) -> None:
    """End what a phase made, where it has not ended."""
    if isinstance(child, Run):
        _quietly(runs.cancel, child)
    elif isinstance(child, Evaluation):
        _quietly(evaluations.cancel, child)
    else:
        _quietly(rollouts.cancel, child)


def _quietly(verb: object, child: object) -> None:
    """Do it to a child that may have ended in the meantime."""
    try:
        verb(child)  # type: ignore[operator]
    except Refused:
        pass


def _rollout(child: Rollout | Evaluation) -> Rollout:
    return child.rollout if isinstance(child, Evaluation) else child


def _lock(row: Iteration) -> Iteration:
    return Iteration.objects.select_for_update(of=("self",)).get(pk=row.pk)


def _soon() -> None:
    """Have a look taken after the commit; a broker that is away costs time, beat looks anyway."""
    transaction.on_commit(lambda: jobs.advance_iterations.apply_async(retry=False), robust=True)
