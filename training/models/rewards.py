"""What judges episodes where no verifier can."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class RewardModel(models.Model):
    """Something that judges episodes where no verifier can; see agent.rewards.

    It gates data only after a calibration that an admin has seen.
    """

    class Kind(models.TextChoices):
        REFERENCE = "reference"  # compares the answer with a known one
        GENERATIVE = "generative"  # a model reads the episode and says whether it succeeded
        ENSEMBLE = "ensemble"  # unanimous, else it abstains

    name = models.SlugField(unique=True)
    kind = models.CharField(max_length=16, choices=Kind)
    deployment = models.ForeignKey("agent.Deployment", null=True, on_delete=models.PROTECT)
    members = models.ManyToManyField("self", symmetrical=False, blank=True)
    config = models.JSONField(default=dict, blank=True)
    gates = models.BooleanField(default=False)
    # The calibration that `gates` rests on: another version of the model needs another one.
    gated_by = models.ForeignKey(
        "Calibration", null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Calibration(models.Model):
    """What a reward model said about episodes whose truth a verifier knows.

    `claim` is the fence: it rises with every job that takes the calibration, and an older one's
    answers are refused.
    """

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    LIVE = (State.QUEUED, State.RUNNING)

    reward_model = models.ForeignKey(
        RewardModel, on_delete=models.CASCADE, related_name="calibrations"
    )
    state = models.CharField(max_length=16, choices=State, default=State.QUEUED)
    claim = models.PositiveIntegerField(default=0)
    heartbeat_at = models.DateTimeField(null=True)
    # Of everything that the judgements depend on: training.rewards.reward_models.fingerprint.
    fingerprint = models.CharField(max_length=64)
    version = models.CharField(max_length=300, blank=True)  # of the models that judged
    labelled_sha256 = models.CharField(max_length=64, blank=True)  # of the labelled set's lines
    total = models.PositiveIntegerField(default=0)
    true_positive = models.PositiveIntegerField(default=0)
    false_positive = models.PositiveIntegerField(default=0)
    true_negative = models.PositiveIntegerField(default=0)
    false_negative = models.PositiveIntegerField(default=0)
    abstained = models.PositiveIntegerField(default=0)
    unreadable = models.PositiveIntegerField(default=0)
    # Per episode of the labelled set: {"episode", "truth"}, and once it was judged "reward",
    # "reason", "evidence", "raw", "version", "error".
    answers = models.JSONField(default=list, blank=True)
    error = models.TextField(blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
