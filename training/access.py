"""The only way from a request to a row of training: staff see all of it, others none of it."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from agent.models import Deployment
from annotation.access import is_admin
from annotation.models import Session
from sandbox.access import staff_only as staff_only
from training.models import (
    Calibration,
    Checkpoint,
    Dataset,
    Episode,
    Evaluation,
    Iteration,
    RewardModel,
    Rollout,
    Run,
)


def dataset_for(request: HttpRequest, pk: int) -> Dataset:
    """Return a dataset; raises PermissionDenied or Http404."""
    _require(request)
    return get_object_or_404(Dataset.objects.select_related("created_by"), pk=pk)


def session_for(request: HttpRequest, pk: int) -> Session:
    """Return a session, for its lineage; raises PermissionDenied or Http404."""
    _require(request)
    return get_object_or_404(Session, pk=pk)


def run_for(request: HttpRequest, pk: int) -> Run:
    """Return a run; raises PermissionDenied or Http404."""
    _require(request)
    rows = Run.objects.select_related(
        "dataset", "base", "critic", "rollout", "deployment", "created_by"
    )
    return get_object_or_404(rows, pk=pk)


def checkpoint_for(request: HttpRequest, pk: int) -> Checkpoint:
    """Return a checkpoint; raises PermissionDenied or Http404."""
    _require(request)
    return get_object_or_404(Checkpoint.objects.select_related("run__dataset", "parent"), pk=pk)


def deployment_for(request: HttpRequest, pk: int) -> Deployment:
    """Return a deployment; raises PermissionDenied or Http404."""
    _require(request)
    return get_object_or_404(Deployment, pk=pk)


def rollout_for(request: HttpRequest, pk: int) -> Rollout:
    """Return a rollout; raises PermissionDenied or Http404."""
    _require(request)
    return get_object_or_404(Rollout.objects.select_related("deployment", "created_by"), pk=pk)


def episode_for(request: HttpRequest, pk: int) -> Episode:
    """Return an episode with its rollout; raises PermissionDenied or Http404."""
    _require(request)
    return get_object_or_404(Episode.objects.select_related("rollout__deployment"), pk=pk)


def evaluation_for(request: HttpRequest, pk: int) -> Evaluation:
    """Return an evaluation; raises PermissionDenied or Http404."""
    _require(request)
    rows = Evaluation.objects.select_related("rollout__deployment", "rollout__created_by")
    return get_object_or_404(rows, pk=pk)


def iteration_for(request: HttpRequest, pk: int) -> Iteration:
    """Return an iteration of the flywheel; raises PermissionDenied or Http404."""
    _require(request)
    rows = Iteration.objects.select_related(
        "deployment", "policy", "base", "candidate", "server", "previous", "created_by"
    )
    return get_object_or_404(rows, pk=pk)


def reward_model_for(request: HttpRequest, pk: int) -> RewardModel:
    """Return a reward model; raises PermissionDenied or Http404."""
    _require(request)
    return get_object_or_404(RewardModel.objects.select_related("deployment", "gated_by"), pk=pk)


def calibration_for(request: HttpRequest, pk: int) -> Calibration:
    """Return a calibration; raises PermissionDenied or Http404."""
    _require(request)
    return get_object_or_404(Calibration.objects.select_related("reward_model", "by"), pk=pk)


def _require(request: HttpRequest) -> None:
    if not is_admin(request.user):
        raise PermissionDenied("training is for staff")
