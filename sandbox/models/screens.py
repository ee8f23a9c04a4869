"""Tickets to screens, and what hands did there."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from sandbox.models.leases import Lease


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
        COMMAND = "command"  # a line that was entered in a terminal

    lease = models.ForeignKey(Lease, on_delete=models.CASCADE, related_name="input_events")
    seq = models.PositiveIntegerField()
    at = models.FloatField()
    kind = models.CharField(max_length=8, choices=Kind)
    x = models.IntegerField(null=True)
    y = models.IntegerField(null=True)
    buttons = models.IntegerField(null=True)
    keysym = models.IntegerField(null=True)
    down = models.BooleanField(null=True)
    text = models.TextField(blank=True)
    frame = models.CharField(max_length=64, blank=True)
    observation = models.JSONField(null=True)

    class Meta:
        ordering = ["seq"]
        constraints = [models.UniqueConstraint(fields=["lease", "seq"], name="input_seq_per_lease")]
