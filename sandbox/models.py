"""Computers, who holds them, and the tickets to their screens."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from sandbox.provider import Handle


class Sandbox(models.Model):
    """One computer of a pool; `epoch` rises with every change of owner and never falls."""

    class State(models.TextChoices):
        PROVISIONING = "provisioning"
        READY = "ready"
        LEASED = "leased"
        RESETTING = "resetting"
        FAILED = "failed"
        DESTROYING = "destroying"
        GONE = "gone"

    name = models.CharField(max_length=64, unique=True)
    provider = models.CharField(max_length=32)
    image = models.CharField(max_length=64, default="desktop")
    host = models.CharField(max_length=128)
    state = models.CharField(max_length=16, choices=State, default=State.PROVISIONING)
    state_deadline = models.DateTimeField(null=True)
    cause = models.TextField(blank=True)
    epoch = models.PositiveIntegerField(default=0)
    handle = models.JSONField(default=dict)
    width = models.PositiveIntegerField(default=1280)
    height = models.PositiveIntegerField(default=720)
    reuse_count = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    ready_at = models.DateTimeField(null=True)
    probed_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "sandboxes"
        indexes = [models.Index(fields=["state", "ready_at"])]

    def __str__(self) -> str:
        return f"{self.name} ({self.state})"

    def as_handle(self) -> Handle:
        return Handle(**self.handle)

    @staticmethod
    def handle_record(handle: Handle) -> dict[str, Any]:
        return asdict(handle)


class Lease(models.Model):
    """The right to use one sandbox until `expires_at`; at most one is active per sandbox."""

    class State(models.TextChoices):
        ACTIVE = "active"
        RELEASED = "released"
        EXPIRED = "expired"
        LOST = "lost"

    class Purpose(models.TextChoices):
        HUMAN = "human"
        AGENT = "agent"

    sandbox = models.ForeignKey(Sandbox, on_delete=models.PROTECT, related_name="leases")
    epoch = models.PositiveIntegerField()
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    purpose = models.CharField(max_length=8, choices=Purpose, default=Purpose.HUMAN)
    idempotency_key = models.CharField(max_length=64, unique=True)
    state = models.CharField(max_length=16, choices=State, default=State.ACTIVE)
    # Who may type: the relay drops the browser's input while this is False.
    human_control = models.BooleanField(default=False)
    granted_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    hard_expires_at = models.DateTimeField()
    last_activity_at = models.DateTimeField(auto_now_add=True)
    released_at = models.DateTimeField(null=True)
    release_reason = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["sandbox"],
                condition=Q(state="active"),
                name="one_active_lease_per_sandbox",
            )
        ]

    def __str__(self) -> str:
        return f"{self.sandbox.name}#{self.epoch} ({self.state})"


class StreamTicket(models.Model):
    """A one-time right to open the screen of a lease; only its sha256 is kept."""

    class Mode(models.TextChoices):
        VIEW = "view"
        CONTROL = "control"

    digest = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    lease = models.ForeignKey(Lease, on_delete=models.CASCADE, related_name="tickets")
    mode = models.CharField(max_length=8, choices=Mode)
    session_key = models.CharField(max_length=64, blank=True)  # the web login it came from
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)


class InputEvent(models.Model):
    """What a hand did while it had control, as the relay forwarded it; append-only.

    `at` is seconds on the host's clock; `frame` is the sha256 of the picture just before a press.
    """

    class Kind(models.TextChoices):
        POINTER = "pointer"
        KEY = "key"

    lease = models.ForeignKey(Lease, on_delete=models.CASCADE, related_name="input_events")
    seq = models.PositiveIntegerField()
    at = models.FloatField()
    kind = models.CharField(max_length=8, choices=Kind)
    x = models.IntegerField(null=True)
    y = models.IntegerField(null=True)
    buttons = models.IntegerField(null=True)
    keysym = models.IntegerField(null=True)
    down = models.BooleanField(null=True)
    frame = models.CharField(max_length=64, blank=True)
    observation = models.JSONField(null=True)

    class Meta:
        ordering = ["seq"]
        constraints = [models.UniqueConstraint(fields=["lease", "seq"], name="input_seq_per_lease")]
