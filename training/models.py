"""Datasets, the runs that train on them, and the checkpoints that come out."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Dataset(models.Model):
    """A frozen, hashed set of trajectories; never edited."""

    class Pool(models.TextChoices):
        SFT = "sft"  # V(s) = 1
        CT = "ct"  # V(s) = 0

    name = models.SlugField(unique=True)
    pool = models.CharField(max_length=8, choices=Pool)
    filters = models.JSONField(default=dict, blank=True)
    sha256 = models.CharField(max_length=64)
    uri = models.CharField(max_length=500)  # trajectories as JSON lines in the blob store
    trajectories = models.PositiveIntegerField(default=0)
    steps = models.PositiveIntegerField(default=0)
    left_out = models.JSONField(default=list, blank=True)  # [{"session", "reason"}]
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    frozen_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.sha256[:8]})"


class DatasetEntry(models.Model):
    """That a session is in a dataset: the lineage from weights back to people."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="entries")
    session = models.ForeignKey(
        "annotation.Session", on_delete=models.PROTECT, related_name="dataset_entries"
    )
    line = models.PositiveIntegerField()
    trajectory_sha256 = models.CharField(max_length=64)

    class Meta:
        ordering = ["line"]
        verbose_name_plural = "dataset entries"
        constraints = [
            models.UniqueConstraint(fields=["dataset", "session"], name="session_once_per_dataset")
        ]


class Checkpoint(models.Model):
    """Weights of a run, where they lie, and what they were made from."""

    version = models.SlugField(unique=True, max_length=100)
    run = models.ForeignKey("Run", null=True, on_delete=models.PROTECT, related_name="checkpoints")
    parent = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="children")
    step = models.PositiveIntegerField(default=0)
    uri = models.CharField(max_length=500)
    sha256 = models.CharField(max_length=64, blank=True)  # of the list of its files' sha256
    manifest = models.JSONField(default=dict, blank=True)  # its tandem.json: dialect, what it reads
    metrics = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.version


class Run(models.Model):
    """One execution of a trainer, backed by a run directory."""

    class Kind(models.TextChoices):
        SFT = "sft"
        CT = "ct"

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
    dataset = models.ForeignKey(Dataset, on_delete=models.PROTECT, related_name="runs")
    base = models.ForeignKey(
        Checkpoint, null=True, on_delete=models.PROTECT, related_name="based_runs"
    )
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


class Metric(models.Model):
    """What a trainer said about one step; a resumed run says some steps again, the last word counts."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="series")
    step = models.PositiveIntegerField()
    values = models.JSONField()  # loss, lr, grad_norm, tokens_per_s, eta_s, time

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


class Rollout(models.Model):
    """A list of episodes that one deployment plays by itself: to collect data, or to be evaluated."""

    class Purpose(models.TextChoices):
        COLLECT = "collect"
        EVALUATE = "evaluate"

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
