"""The runs that train, and the checkpoints that come out."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Checkpoint(models.Model):
    """Weights of a run, where they lie, and what they were made from."""

    class Role(models.TextChoices):
        POLICY = "policy"
        CRITIC = "critic"  # says what an episode will still earn; of no use to annotators

    version = models.SlugField(unique=True, max_length=100)
    run = models.ForeignKey("Run", null=True, on_delete=models.PROTECT, related_name="checkpoints")
    parent = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="children")
    role = models.CharField(max_length=8, choices=Role, default=Role.POLICY)
    step = models.PositiveIntegerField(default=0)
    uri = models.CharField(max_length=500)
    sha256 = models.CharField(max_length=64, blank=True)  # of the list of its files' sha256
    manifest = models.JSONField(default=dict, blank=True)  # its tandem.json: dialect, what it reads
    metrics = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    # When data that it was trained on was deleted: it still knows what it learnt from it.
    erased_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.version


class Run(models.Model):
    """One execution of a trainer, backed by a run directory."""

    class Kind(models.TextChoices):
        SFT = "sft"
        CT = "ct"
        VALUE = "value"  # pretrains a critic on the episodes of a fixed policy
        PPO = "ppo"
        ORM = "orm"  # teaches a model to judge episodes
        MERGE = "merge"

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        CANCELLING = "cancelling"
        CANCELLED = "cancelled"
        SUCCEEDED = "succeeded"
        FAILED = "failed"

    WAITING = (State.QUEUED, State.RUNNING, State.CANCELLING)

    name = models.SlugField(unique=True)
    kind = models.CharField(max_length=8, choices=Kind, default=Kind.SFT)
    # What it learns from: a frozen dataset (and those of `mixed`), or the episodes of a rollout.
    dataset = models.ForeignKey("Dataset", null=True, on_delete=models.PROTECT, related_name="runs")
    rollout = models.ForeignKey("Rollout", null=True, on_delete=models.PROTECT, related_name="runs")
    base = models.ForeignKey(
        Checkpoint, null=True, on_delete=models.PROTECT, related_name="based_runs"
    )
    critic = models.ForeignKey(
        Checkpoint, null=True, on_delete=models.PROTECT, related_name="advised_runs"
    )
    # What plays the rollout of an RL run; its weights are replaced after each update.
    deployment = models.ForeignKey("agent.Deployment", null=True, on_delete=models.SET_NULL)
    config = models.JSONField(default=dict, blank=True)
    state = models.CharField(max_length=16, choices=State, default=State.QUEUED)
    step = models.PositiveIntegerField(default=0)
    total_steps = models.PositiveIntegerField(default=0)
    metrics = models.JSONField(default=dict, blank=True)  # the newest line
    rows = models.JSONField(default=dict, blank=True)  # how many rows, and the steps left out
    directory = models.CharField(max_length=500, blank=True)
    # Who looks after the trainer. `supervisor` is the fence: whoever finds another's there lets go.
    supervisor = models.CharField(max_length=64, blank=True)
    host = models.CharField(max_length=128, blank=True)
    pid = models.PositiveIntegerField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)  # trainers started since the last launch
    heartbeat_at = models.DateTimeField(null=True)
    log = models.TextField(blank=True)  # the tail
    error = models.TextField(blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name

    @property
    def ended(self) -> bool:
        return self.state not in self.WAITING


class MixedDataset(models.Model):
    """One more dataset of a run; `weight` is how often its rows come, the main dataset's being 1."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="mixed")
    dataset = models.ForeignKey("Dataset", on_delete=models.PROTECT, related_name="mixed_into")
    weight = models.FloatField(default=1.0)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["run", "dataset"], name="dataset_once_per_run"),
            models.CheckConstraint(condition=models.Q(weight__gt=0), name="mixed_in_some_measure"),
        ]


class MergeSource(models.Model):
    """One of the checkpoints that a merge adds up, with its share."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="sources")
    checkpoint = models.ForeignKey(Checkpoint, on_delete=models.PROTECT, related_name="merged_into")
    weight = models.FloatField()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["run", "checkpoint"], name="source_once_per_merge"),
            models.CheckConstraint(
                condition=models.Q(weight__gte=0), name="merged_in_some_measure"
            ),
        ]


class Metric(models.Model):
    """What a trainer said about one step; a resumed run says some steps again, the last word counts."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="series")
    step = models.PositiveIntegerField()
    values = models.JSONField()  # loss, lr, tokens_per_s, time ...: training.runs.series names them

    class Meta:
        ordering = ["step"]
        constraints = [models.UniqueConstraint(fields=["run", "step"], name="one_metric_per_step")]


class Promotion(models.Model):
    """That a checkpoint was put beside the annotators, when and by whom; the newest is in force."""

    checkpoint = models.ForeignKey(Checkpoint, on_delete=models.PROTECT, related_name="promotions")
    deployment = models.ForeignKey("agent.Deployment", on_delete=models.CASCADE)
    previous = models.ForeignKey(Checkpoint, null=True, on_delete=models.PROTECT, related_name="+")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    at = models.DateTimeField(auto_now_add=True)
