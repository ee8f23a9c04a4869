"""Who holds which computer, who waits for one, and how many a person may have."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from sandbox.models.fleet import Pool
from sandbox.models.sandboxes import Sandbox


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

    class Ending(models.TextChoices):
        """Why a lease is over, for programs; `release_reason` says it in words."""

        DONE = "done"  # given back
        IDLE = "idle"  # not renewed in time
        CAP = "cap"  # its hard end came
        COMPUTER = "computer"  # the computer broke
        HOST = "host"  # the machine under it broke or was stopped
        ADMIN = "admin"  # ended by a person in charge

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
    ending = models.CharField(max_length=16, choices=Ending, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["expires_at"], condition=Q(state="active"), name="lease_expiry"),
            models.Index(fields=["owner"], condition=Q(state="active"), name="lease_of_owner"),
            models.Index(fields=["released_at"], name="lease_released"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["sandbox"],
                condition=Q(state="active"),
                name="one_active_lease_per_sandbox",
            )
        ]

    def __str__(self) -> str:
        return f"{self.sandbox.name}#{self.epoch} ({self.state})"


class LeaseRequest(models.Model):
    """A caller who waits for a computer of a pool, and its place among the others.

    First by `priority` (lower is earlier), then by `turn`, which goes round the tenants.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        GRANTED = "granted"
        REFUSED = "refused"  # its deadline passed
        WITHDRAWN = "withdrawn"  # the caller stopped asking

    pool = models.ForeignKey(Pool, null=True, on_delete=models.CASCADE, related_name="requests")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE)
    tenant = models.CharField(max_length=64)
    purpose = models.CharField(max_length=8, choices=Lease.Purpose)
    priority = models.SmallIntegerField()
    turn = models.BigIntegerField()
    idempotency_key = models.CharField(max_length=64, unique=True)
    enqueued_at = models.DateTimeField()
    bind_deadline = models.DateTimeField()
    last_asked_at = models.DateTimeField()
    state = models.CharField(max_length=16, choices=State, default=State.WAITING)
    reason = models.TextField(blank=True)
    lease = models.OneToOneField(
        Lease, null=True, on_delete=models.SET_NULL, related_name="request"
    )

    class Meta:
        indexes = [
            models.Index(
                fields=["pool", "priority", "turn", "id"],
                condition=Q(state="waiting"),
                name="request_order",
            ),
            models.Index(fields=["owner"], condition=Q(state="waiting"), name="request_of_owner"),
            models.Index(fields=["pool", "enqueued_at"], name="request_of_pool"),
        ]

    def __str__(self) -> str:
        return f"request {self.pk} of {self.tenant} ({self.state})"


class Quota(models.Model):
    """How many computers a person may hold and wait for at once; without a user: everybody else."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE
    )
    most = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user"], nulls_distinct=False, name="one_quota_for_everybody"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user or 'everybody'}: {self.most}"
