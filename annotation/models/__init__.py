"""Tasks, the sessions in which people and agents attempt them, and what was decided at every step."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from annotation.models.contributing import (
    Application,
    Function,
    Level,
    Offer,
    Project,
    Query,
    QueryRequest,
)
from annotation.models.devices import Device, DeviceCode, WrongCode
from annotation.models.recordings import (
    Consent,
    Hearing,
    Recording,
    RecordingFile,
    RecordingReview,
    RecordingStep,
    Rewording,
    Utterance,
)


class Task(models.Model):
    """An instruction, a starting state, and how to tell that it was done."""

    class State(models.TextChoices):
        OPEN = "open"
        CLAIMED = "claimed"
        DONE = "done"
        RETIRED = "retired"

    external_id = models.CharField(max_length=200, unique=True)
    instruction = models.TextField()
    domain = models.CharField(max_length=64, blank=True)
    pool = models.CharField(
        max_length=64, blank=True, help_text="the pool whose computers it needs; empty: the default"
    )
    recorded_as = models.CharField(
        max_length=16,
        blank=True,
        choices=Recording.Kind,
        help_text="for contributors' recorders and not for the workbench: what they are asked for",
    )
    setup = models.JSONField(default=list, blank=True)
    verifier = models.JSONField(default=dict, blank=True)
    guidelines = models.TextField(blank=True)
    max_steps = models.PositiveSmallIntegerField(default=30)
    priority = models.IntegerField(default=0)
    needed = models.PositiveSmallIntegerField(default=1, help_text="accepted sessions wanted")
    state = models.CharField(max_length=16, choices=State, default=State.OPEN)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-priority", "pk"]
        indexes = [models.Index(fields=["state", "-priority", "id"])]

    def __str__(self) -> str:
        return self.external_id


class Skip(models.Model):
    """Why somebody passed a task by; it is not offered to them again."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="skips")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    reason = models.CharField(max_length=500)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task", "user"], name="skip_once")]


class Pseudonym(models.Model):
    """The random name under which a person's work leaves the platform."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="pseudonym"
    )
    name = models.CharField(max_length=32, unique=True)

    def __str__(self) -> str:
        return self.name


class Session(models.Model):
    """One attempt at a Task on one Sandbox.

    `fence` rises whenever the session changes hands; a request with an older one is refused (409),
    and what it carried is kept as a draft.
    """

    class Mode(models.TextChoices):
        INTERACTIVE = "interactive"
        IN_SITU = "in_situ"

    class Controller(models.TextChoices):
        AGENT = "agent"
        HUMAN = "human"

    class Status(models.TextChoices):
        PREPARING = "preparing"  # a sandbox is being leased and set up
        ACTIVE = "active"
        SUBMITTED = "submitted"  # waits for a reviewer
        RETURNED = "returned"  # back with its author
        ACCEPTED = "accepted"
        REJECTED = "rejected"
        EXPIRED = "expired"  # the author went away; drafts and steps are kept
        FAILED = "failed"  # env_failure; `error` says what broke

    LIVE = (Status.PREPARING, Status.ACTIVE)

    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="sessions")
    mode = models.CharField(max_length=16, choices=Mode, default=Mode.INTERACTIVE)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="sessions"
    )
    pseudonym = models.CharField(
        max_length=32, blank=True
    )  # what exports say instead of the author
    deployment = models.ForeignKey("agent.Deployment", null=True, on_delete=models.SET_NULL)
    lease = models.ForeignKey("sandbox.Lease", null=True, on_delete=models.SET_NULL)
    status = models.CharField(max_length=16, choices=Status, default=Status.PREPARING)
    controller = models.CharField(max_length=8, choices=Controller, default=Controller.AGENT)
    fence = models.PositiveIntegerField(default=1)
    heartbeat_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    stage = models.CharField(max_length=100, blank=True)  # what preparing is doing, for the page
    # A worker's last sign of life while it prepares or verifies; None: nobody is at it.
    worker_at = models.DateTimeField(null=True)
    preparations = models.PositiveSmallIntegerField(default=0)  # computers asked for so far
    error = models.TextField(blank=True)
    outcome = models.CharField(max_length=16, blank=True)  # trajectory.Outcome
    report = models.TextField(blank=True)  # why infeasible, or what was wrong with the task
    answer = models.TextField(blank=True)
    reward = models.FloatField(null=True)  # the verifier's; None where there is none
    verdict_detail = models.TextField(blank=True)
    draft = models.JSONField(default=dict, blank=True)
    active_ms = models.PositiveBigIntegerField(default=0)
    taken_over_at = models.FloatField(null=True)  # host's clock; input from here on is a hand's
    input_seq = models.PositiveIntegerField(default=0)  # last InputEvent that became a step
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["author"],
                condition=Q(status__in=["preparing", "active"], mode="interactive"),
                name="one_live_session_per_author",
            ),
        ]
        indexes = [models.Index(fields=["status", "expires_at"])]

    def __str__(self) -> str:
        return f"session {self.pk} of {self.task_id}"


class DecisionPoint(models.Model):
    """A moment at which the policy was asked: one observation, k proposals, at most one decision."""

    class Status(models.TextChoices):
        REQUESTED = "requested"
        READY = "ready"
        FAILED = (
            "failed"  # the policy gave no usable answer; `error` says why; a person may still act
        )
        STALE = "stale"  # the screen moved on before anybody decided
        DECIDED = "decided"

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="decision_points")
    index = models.PositiveIntegerField()  # number of the step that it leads to
    observation = models.JSONField(null=True)  # trajectory.Observation
    screenshot = models.CharField(max_length=64, blank=True, db_index=True)
    status = models.CharField(max_length=16, choices=Status, default=Status.REQUESTED)
    hint = models.CharField(max_length=500, blank=True)  # what the annotator told the policy
    error = models.TextField(blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    requested_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    ready_at = models.DateTimeField(null=True)
    model_ms = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["session"],
                condition=Q(status__in=["requested", "ready"]),
                name="one_open_decision_point",
            )
        ]
        ordering = ["pk"]


class Proposal(models.Model):
    """One candidate of the policy; kept for ever beside what was decided."""

    decision_point = models.ForeignKey(
        DecisionPoint, on_delete=models.CASCADE, related_name="proposals"
    )
    rank = models.PositiveSmallIntegerField()  # 1..k, as numbered on the screen
    thought = models.TextField(blank=True)
    action = models.JSONField(null=True)  # None where the text could not be parsed
    raw = models.TextField(blank=True)
    error = models.TextField(blank=True)
    model_version = models.CharField(max_length=100, blank=True)
    sample = models.JSONField(null=True)  # trajectory.Sample

    class Meta:
        ordering = ["rank"]
        constraints = [
            models.UniqueConstraint(fields=["decision_point", "rank"], name="one_proposal_per_rank")
        ]


class Step(models.Model):
    """What was done at one step; append-only once executed."""

    class State(models.TextChoices):
        CHOSEN = "chosen"  # decided, not yet known to be done; the reaper finishes it by action_id
        EXECUTED = "executed"
        FAILED = "failed"

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="steps")
    index = models.PositiveIntegerField()
    observation = models.JSONField()
    screenshot = models.CharField(max_length=64, db_index=True)
    thought = models.TextField(blank=True)
    action = models.JSONField()
    actor = models.CharField(max_length=8)  # trajectory.Actor
    model_version = models.CharField(max_length=100, blank=True)
    action_id = models.CharField(max_length=64, unique=True)
    state = models.CharField(max_length=16, choices=State, default=State.CHOSEN)
    error = models.TextField(blank=True)
    output = models.TextField(blank=True)
    trainable = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    executed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["index"]
        constraints = [
            models.UniqueConstraint(fields=["session", "index"], name="step_number_per_session")
        ]


class Decision(models.Model):
    """How a step came about: what a person did with the proposals, and how long it took."""

    class Kind(models.TextChoices):
        ACCEPTED = "accepted"
        EDITED_THOUGHT = "edited_thought"
        EDITED_ACTION = "edited_action"
        EDITED = "edited"  # both
        OVERRIDDEN = "overridden"  # neither came from a proposal
        TAKEN_OVER = "taken_over"  # done by hand through the relay

    step = models.OneToOneField(Step, on_delete=models.CASCADE, related_name="decision")
    decision_point = models.OneToOneField(DecisionPoint, null=True, on_delete=models.SET_NULL)
    proposal = models.ForeignKey(Proposal, null=True, on_delete=models.SET_NULL)
    kind = models.CharField(max_length=16, choices=Kind)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    active_ms = models.PositiveIntegerField(default=0)
    at = models.DateTimeField(auto_now_add=True)


class Review(models.Model):
    """One person's verdict on a finished session."""

    class Verdict(models.TextChoices):
        ACCEPTED = "accepted"
        CORRECTED = "corrected"  # accepted with corrections
        RETURNED = "returned"
        REJECTED = "rejected"

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="reviews")
    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    verdict = models.CharField(max_length=16, choices=Verdict)
    reasons = models.TextField(blank=True)
    at = models.DateTimeField(auto_now_add=True)


class StepReview(models.Model):
    """A reviewer's word on one step; a correction replaces thought or action in training data."""

    class Mark(models.TextChoices):
        RIGHT = "right"
        WRONG = "wrong"
        REDUNDANT = "redundant"

    review = models.ForeignKey(Review, on_delete=models.CASCADE, related_name="steps")
    step = models.ForeignKey(Step, on_delete=models.CASCADE, related_name="reviews")
    mark = models.CharField(max_length=16, choices=Mark, default=Mark.RIGHT)
    thought = models.TextField(blank=True)
    action = models.JSONField(null=True)
    comment = models.TextField(blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["review", "step"], name="one_mark_per_step")]


__all__ = [
    "Application",
    "Consent",
    "Decision",
    "DecisionPoint",
    "Device",
    "DeviceCode",
    "Function",
    "Hearing",
    "Level",
    "Offer",
    "Project",
    "Proposal",
    "Pseudonym",
    "Query",
    "QueryRequest",
    "Recording",
    "RecordingFile",
    "RecordingReview",
    "RecordingStep",
    "Review",
    "Rewording",
    "Session",
    "Skip",
    "Step",
    "StepReview",
    "Task",
    "Utterance",
    "WrongCode",
]
