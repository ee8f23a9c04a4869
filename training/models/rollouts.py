"""Episodes that a policy plays alone: to collect data, to be evaluated, to learn from."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Rollout(models.Model):
    """A list of episodes that one deployment plays by itself: to collect data, or to be evaluated."""

    class Purpose(models.TextChoices):
        COLLECT = "collect"
        EVALUATE = "evaluate"
        TRAIN = "train"  # a streaming RL run reads it as it comes

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        PAUSED = "paused"  # nothing new is asked of the policy; episodes wait where they are
        DRAINING = "draining"  # no episode is begun any more; running ones end
        CANCELLED = "cancelled"
        DONE = "done"
        FAILED = "failed"  # `error` says why nothing can go on

    LIVE = (State.QUEUED, State.RUNNING, State.PAUSED, State.DRAINING)

    name = models.SlugField(unique=True, max_length=100)
    purpose = models.CharField(max_length=16, choices=Purpose, default=Purpose.COLLECT)
    deployment = models.ForeignKey("agent.Deployment", on_delete=models.PROTECT)
    state = models.CharField(max_length=16, choices=State, default=State.QUEUED)
    # max_steps, temperature, step_s, episode_s, attempts, staleness, concurrency, picture: see
    # training.rollouts.config, which checks them.
    config = models.JSONField(default=dict, blank=True)
    total = models.PositiveIntegerField(default=0)
    # Updates of the trainer that reads its episodes: what a staleness bound counts against.
    version = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name

    @property
    def ended(self) -> bool:
        return self.state not in self.LIVE


class RolloutWorker(models.Model):
    """A process that plays episodes, and how busy it has been in the last minute.

    It only reports: an episode belongs to the worker that its own row names.
    """

    name = models.CharField(max_length=100, unique=True)
    host = models.CharField(max_length=128)
    pid = models.PositiveIntegerField()
    environments = models.PositiveIntegerField()  # pages that it may have open at once
    slots = models.PositiveIntegerField(default=0)  # answers that it may wait for at once
    # {"environments": share, "policy": share, "waiting": calls that wait for a slot, "running",
    #  "steps_per_s"}; shares from 0 to 1
    busy = models.JSONField(default=dict, blank=True)
    started_at = models.DateTimeField(auto_now_add=True)
    heartbeat_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name


class Episode(models.Model):
    """One attempt of a policy at one task and seed, alone: one job that may be begun more than once.

    `claim` is the fence: it rises with every worker that takes the episode, and only the newest may
    finish it. A broken environment costs an attempt, never a reward.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        BROKEN = "broken"  # the environment failed in every attempt; no reward follows
        CANCELLED = "cancelled"

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="episodes")
    family = models.CharField(max_length=64)
    task = models.CharField(max_length=200)
    seed = models.BigIntegerField()
    repeat = models.PositiveIntegerField(default=0)  # the how manieth sample of the same task, seed
    state = models.CharField(max_length=16, choices=State, default=State.WAITING)
    claim = models.PositiveIntegerField(default=0)
    worker = models.CharField(max_length=100, blank=True)
    heartbeat_at = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)  # that broke
    failures = models.JSONField(default=list, blank=True)  # [{"attempt", "cause", "detail", "at"}]
    admitted = models.PositiveIntegerField(default=0)  # the rollout's version when it was begun
    staleness = models.PositiveIntegerField(null=True)  # the trainer's updates while it was played
    steps = models.PositiveIntegerField(default=0)  # so far
    outcome = models.CharField(max_length=16, blank=True)  # trajectory.Outcome
    reward = models.FloatField(null=True)
    score = models.FloatField(null=True)
    verdict = models.JSONField(default=dict, blank=True)  # sandbox.verdict.Verdict.as_dict
    versions = models.JSONField(default=list, blank=True)  # of the model, in order of their steps
    trajectory = models.CharField(max_length=64, blank=True)  # sha256 of its line in the blob store
    seconds = models.FloatField(default=0)
    policy_seconds = models.FloatField(default=0)
    waited_seconds = models.FloatField(default=0)  # for a policy slot, or for the policy to be back
    # Order of finishing over all rollouts: a reader that remembers the last one misses none.
    sequence = models.BigIntegerField(null=True, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(fields=["rollout", "state"]),
            models.Index(fields=["state", "heartbeat_at"]),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["rollout", "family", "task", "seed", "repeat"], name="episode_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.family}/{self.task}#{self.seed}"


class Evaluation(models.Model):
    """How good a deployment is at a fixed list of tasks and seeds; its episodes are a Rollout's.

    What the deployment was when it began (`version`, `reads`) and what was asked (`tasks`, with the
    sha256 of all that their outcome depends on) are kept here: both may change afterwards.
    """

    name = models.SlugField(unique=True, max_length=100)
    suite = models.CharField(max_length=64)
    suite_checksum = models.CharField(max_length=64)
    tasks = models.JSONField(default=list)  # [{"id", "checksum", "reference", "reference_from"}]
    rollout = models.OneToOneField(Rollout, on_delete=models.CASCADE, related_name="evaluation")
    seeds = models.JSONField(default=list)
    repeats = models.PositiveIntegerField(default=1)  # samples of the same task and seed
    max_steps = models.PositiveIntegerField()
    version = models.CharField(max_length=100, blank=True)
    reads = models.CharField(max_length=16)  # agent.models.Deployment.Reads
    # training.evaluations.results; {} until the rollout has ended.
    results = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name
