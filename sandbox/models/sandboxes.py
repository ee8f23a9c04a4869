"""Computers: one row each, from their first start until they are gone."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.db import models
from django.db.models import Q

from sandbox.models.fleet import Pool
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
    pool = models.ForeignKey(Pool, null=True, on_delete=models.PROTECT, related_name="sandboxes")
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
    # What it may reach, as its pool said when it was made: a rule is never changed under a computer.
    network = models.CharField(max_length=32, blank=True, default="")
    egress = models.JSONField(default=list)
    reuse_count = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    born_at = models.DateTimeField(null=True)  # when this boot began
    ready_at = models.DateTimeField(null=True)
    probed_at = models.DateTimeField(null=True)
    canary = models.BooleanField(default=False)  # held by the platform's own trial

    class Meta:
        verbose_name_plural = "sandboxes"
        indexes = [
            # The claim reads the first few of these, however many there are.
            models.Index(
                fields=["pool", "ready_at", "id"],
                condition=Q(state="ready"),
                name="sandbox_ready_of_pool",
            ),
            models.Index(
                fields=["pool", "state"], condition=~Q(state="gone"), name="sandbox_of_pool"
            ),
            models.Index(fields=["host"], condition=~Q(state="gone"), name="sandbox_of_host"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.state})"

    def as_handle(self) -> Handle:
        return Handle(**self.handle)

    @staticmethod
    def handle_record(handle: Handle) -> dict[str, Any]:
        return asdict(handle)
