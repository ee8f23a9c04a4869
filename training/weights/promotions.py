"""Verbs of Promotion: putting a checkpoint beside the annotators, and taking it back."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from agent import deployments
from agent.models import Deployment
from training.errors import Mismatch, WrongState
from training.models import Checkpoint, Promotion


def promote(checkpoint: Checkpoint, *, deployment: Deployment, by: User | None) -> Promotion:
    """Put `checkpoint` behind `deployment`: the next proposal comes from it.

    Raises Mismatch where the two don't read or write the same, WrongState where it is in force.
    """
    refuse_mismatch(checkpoint, deployment)
    with transaction.atomic():
        locked = Deployment.objects.select_for_update().get(pk=deployment.pk)
        if locked.version == checkpoint.version:
            raise WrongState(f"{locked.name} serves {checkpoint.version} already")
        promotion = Promotion.objects.create(
            checkpoint=checkpoint, deployment=locked, previous=in_force(locked), by=by
        )
        deployments.point_at(locked, checkpoint_uri=checkpoint.uri, version=checkpoint.version)
    return promotion


def refuse_mismatch(checkpoint: Checkpoint, deployment: Deployment) -> None:
    """Raise Mismatch unless `deployment` can serve `checkpoint` as it is set."""
    if deployment.kind != Deployment.Kind.LOCAL:
        raise Mismatch(
            f"{deployment.name} is {deployment.get_kind_display()}: it loads no checkpoints"
        )
    if checkpoint.role != Checkpoint.Role.POLICY:
        raise Mismatch(f"{checkpoint.version} is a critic: it can't act, choose a policy")
    if checkpoint.erased_at:
        raise Mismatch(
            f"{checkpoint.version} learnt from data that was deleted on {checkpoint.erased_at:%Y-%m-%d}: "
            "train again without it"
        )
    for field, key in (("dialect", "dialect"), ("reads", "observation")):
        wanted, has = getattr(deployment, field), checkpoint.manifest.get(key)
        if has and has != wanted:
            raise Mismatch(
                f"{checkpoint.version} was trained with {key} {has!r}, {deployment.name} uses "
                f"{wanted!r}: change the deployment or choose another"
            )


def in_force(deployment: Deployment) -> Checkpoint | None:
    """Return the checkpoint that `deployment` serves; None where it is not one of ours."""
    return Checkpoint.objects.filter(version=deployment.version).first()


def roll_back(deployment: Deployment, *, by: User | None) -> Promotion:
    """Promote what was in force before the newest promotion of `deployment`; raises WrongState."""
    newest = Promotion.objects.filter(deployment=deployment).order_by("-pk").first()
    if newest is None or newest.previous is None:
        raise WrongState(f"nothing was promoted to {deployment.name} before: choose a checkpoint")
    return promote(newest.previous, deployment=deployment, by=by)
