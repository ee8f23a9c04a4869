"""Verbs of RewardModel: create, admit to gate data, withdraw; and the model behind a row."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from agent import deployments, rewards
from agent.models import Deployment
from annotation.session import pictures
from sandbox.families import checksum
from training.errors import BadConfig, NameTaken, Refused, WrongState
from training.models import Calibration, RewardModel
from training.rewards.measures import measure

MIN_PRECISION = 0.8
"""What the lower end of the precision's 95 % interval must reach, unless an admin asks for more."""

Kind = RewardModel.Kind


class NotAdmitted(Refused):
    """A reward model may not gate data; the message says what is missing."""


def create(
    *,
    name: str,
    kind: str,
    deployment: Deployment | None = None,
    members: Sequence[RewardModel] = (),
    by: User | None = None,
) -> RewardModel:
    """Make a reward model that gates nothing yet. Raises BadConfig by field, and NameTaken.

    It is never edited: other members or another deployment make another model.
    """
    if errors := _wrong(kind, deployment, members):
        raise BadConfig(errors)
    try:
        with transaction.atomic():
            row = RewardModel.objects.create(
                name=name, kind=kind, deployment=deployment, created_by=by
            )
            row.members.set(members)
    except IntegrityError as error:
        raise NameTaken(f"there is a reward model called {name!r}: choose another name") from error
    return row


def build(row: RewardModel) -> rewards.RewardModel:
    """Return the model behind a row; raises PolicyMisconfigured."""
    chat = deployments.chat(row.deployment, pictures=pictures.read) if row.deployment else None
    match row.kind:
        case Kind.REFERENCE:
            return rewards.ReferenceModel(chat)
        case Kind.GENERATIVE if chat is not None:
            return rewards.GenerativeModel(chat, row.deployment.reads)
        case Kind.ENSEMBLE:
            return rewards.EnsembleModel(tuple(build(one) for one in row.members.order_by("pk")))
    raise WrongState(f"{row.name} has no deployment to ask")


def fingerprint(row: RewardModel) -> str:
    """Return the sha256 of all that its judgements depend on, as far as our rows know."""
    asked = row.deployment
    served = [
        asked and [asked.base_url, asked.model, asked.checkpoint_uri, asked.version, asked.reads]
    ]
    members = [fingerprint(one) for one in row.members.order_by("pk")]
    return checksum(row.kind, served, members)


def admit(row: RewardModel, *, precision: float = MIN_PRECISION) -> RewardModel:
    """Let a reward model gate data, on the strength of its newest calibration.

    Raises NotAdmitted without a finished calibration of what is deployed now, and where the lower end
    of the interval of its precision is below `precision`: few judgements are not enough, however right.
    """
    if not 0 < precision <= 1:
        raise BadConfig({"precision": "say more than 0 and at most 1"})
    with transaction.atomic():
        locked = RewardModel.objects.select_for_update().get(pk=row.pk)
        locked.gated_by = _sufficient(locked, precision)
        locked.gates = True
        locked.save(update_fields=["gates", "gated_by"])
    return locked


def withdraw(row: RewardModel) -> RewardModel:
    """Let it gate nothing any more; always possible."""
    RewardModel.objects.filter(pk=row.pk).update(gates=False, gated_by=None)
    row.refresh_from_db()
    return row


def in_force(row: RewardModel) -> bool:
    """Whether it may gate now: it was admitted, and nothing that it depends on has changed since."""
    return row.gates and row.gated_by is not None and row.gated_by.fingerprint == fingerprint(row)


def _sufficient(row: RewardModel, precision: float) -> Calibration:
    newest = row.calibrations.filter(state=Calibration.State.DONE).order_by("-pk").first()
    if newest is None:
        raise NotAdmitted(f"{row.name} has no finished calibration: run one first")
    if newest.fingerprint != fingerprint(row):
        raise NotAdmitted(
            f"{row.name} has changed since calibration {newest.pk} (another version, address or "
            "observation): run a new one"
        )
    found = measure(newest.answers).precision
    if found is None:
        raise NotAdmitted(f"{row.name} called no episode a success: its precision is unknown")
    if found.low < precision:
        raise NotAdmitted(
            f"{row.name} has a precision of {found.value:.3f} (95 % interval {found.low:.3f} to "
            f"{found.high:.3f}): the lower end must reach {precision:g}. Calibrate on more episodes, "
            "or choose another model."
        )
    return newest


def _wrong(
    kind: str, deployment: Deployment | None, members: Sequence[RewardModel]
) -> dict[str, str]:
    errors = {}
    if kind not in Kind.values:
        return {"kind": f"{kind!r} is none of {', '.join(Kind.values)}"}
    if deployment is not None and deployment.kind == Deployment.Kind.SCRIPTED:
        errors["deployment"] = f"{deployment.name} is scripted: it answers no question"
    if kind == Kind.GENERATIVE and deployment is None:
        errors["deployment"] = "choose the model that reads the episodes"
    if kind == Kind.ENSEMBLE:
        if deployment is not None:
            errors["deployment"] = "an ensemble asks its members; leave this empty"
        if len(set(members)) < 2:
            errors["members"] = "choose at least two"
        elif any(member.kind == Kind.ENSEMBLE for member in members):
            errors["members"] = "an ensemble can't be a member of another"
    elif members:
        errors["members"] = "only an ensemble has members"
    return errors
