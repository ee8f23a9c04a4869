"""One turn of the flywheel."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from training.models.data import Dataset
from training.models.rollouts import Evaluation, Rollout
from training.models.runs import Checkpoint, Promotion, Run


def _child(model: type[models.Model]) -> models.ForeignKey:  # type: ignore[type-arg]
    return models.ForeignKey(model, null=True, on_delete=models.PROTECT, related_name="+")


class Iteration(models.Model):
    """One turn of the flywheel: M(t) plays, its episodes become data, the data a candidate.

    What a phase made is linked here in the transaction that makes it: whoever goes on after a crash
    finds it, and makes no second one.
    """

    class State(models.TextChoices):
        RUNNING = "running"
        PAUSED = "paused"  # no phase begins; what the phase made is paused too
        FAILED = "failed"  # `error` says in which phase and why; it can be tried again
        CANCELLED = "cancelled"
        DONE = "done"

    class Phase(models.TextChoices):
        DEPLOY = "deploy"  # M(t) gets a policy server of the iteration's own
        COLLECT = "collect"  # it plays, several samples of each task and seed
        BASELINE = "baseline"  # it is evaluated, to compare the candidate with
        FREEZE = "freeze"  # V(s) sends every trajectory to D_SFT(t+1) or D_CT(t+1)
        CT = "ct"
        SFT = "sft"
        PLAY = "play"  # the candidate plays, for its critic to learn from
        VALUE = "value"
        RL = "rl"
        EVALUATE = "evaluate"  # as the baseline, with the candidate
        DECIDE = "decide"
        DONE = "done"

    LIVE = (State.RUNNING, State.PAUSED)
    ENDED = (State.FAILED, State.CANCELLED, State.DONE)

    name = models.SlugField(unique=True, max_length=32)
    number = models.PositiveIntegerField(default=1)  # t, counted from 1 within its chain
    # Unique: an iteration is followed once, also where two processes want to begin the next one.
    previous = models.OneToOneField(
        "self", null=True, on_delete=models.PROTECT, related_name="following"
    )
    remaining = models.PositiveIntegerField(
        default=0
    )  # iterations that begin by themselves after it
    state = models.CharField(max_length=16, choices=State, default=State.RUNNING)
    phase = models.CharField(max_length=16, choices=Phase, default=Phase.DEPLOY)
    config = models.JSONField(default=dict)  # training.iterations.config checks it
    error = models.TextField(blank=True)
    # The seeds that are collected start here; no iteration of the chain uses them again.
    first_seed = models.BigIntegerField(default=0)

    deployment = models.ForeignKey(
        "agent.Deployment", on_delete=models.PROTECT, related_name="iterations"
    )  # what a better candidate is promoted to
    policy = models.ForeignKey(Checkpoint, on_delete=models.PROTECT, related_name="iterations")
    base = models.ForeignKey(Checkpoint, on_delete=models.PROTECT, related_name="+")
    candidate = _child(Checkpoint)  # the newest weights that this iteration trained
    critic = _child(Checkpoint)

    rollout = _child(Rollout)
    baseline = _child(Evaluation)
    sft_dataset = _child(Dataset)
    ct_dataset = _child(Dataset)
    ct_run = _child(Run)
    sft_run = _child(Run)
    critic_rollout = _child(Rollout)
    value_run = _child(Run)
    rl_run = _child(Run)
    evaluation = _child(Evaluation)
    promotion = _child(Promotion)

    # {phase: {"state": running, done, skipped or failed; "begun_at", "ended_at", "note", "tries"}}
    phases = models.JSONField(default=dict, blank=True)
    decision = models.JSONField(default=dict, blank=True)  # training.iterations.decision
    resuming = models.BooleanField(default=False)  # a run that the pause stopped is to go on

    # Who plays: a policy server of the chain's own (its machine stands in `server_host`), or a
    # deployment whose weights the chain replaces.
    server = models.ForeignKey(
        "agent.Deployment", null=True, on_delete=models.PROTECT, related_name="+"
    )
    own_server = models.BooleanField(default=True)
    server_host = models.CharField(max_length=128, blank=True)
    server_since = models.DateTimeField(null=True)  # since when it is waited for
    server_trouble = models.TextField(blank=True)  # why it is not there yet
    server_refuses = models.CharField(max_length=100, blank=True)  # the version it can't serve

    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name

    @property
    def ended(self) -> bool:
        return self.state in self.ENDED
