"""Where computers come from: the machines that carry them and the pools they belong to."""

from __future__ import annotations

from django.db import models


class Host(models.Model):
    """A machine that runs computers; `Sandbox.host` is its `name`."""

    class State(models.TextChoices):
        UP = "up"
        DRAINING = "draining"  # keeps the leases it has, gets no new ones
        DOWN = "down"

    name = models.CharField(max_length=128, unique=True)
    address = models.CharField(max_length=255, blank=True)  # "host:port" of its gateway
    state = models.CharField(max_length=16, choices=State, default=State.UP)
    last_seen = models.DateTimeField(null=True)
    slots = models.PositiveIntegerField(default=0)  # computers that it can carry
    memory_mb = models.PositiveIntegerField(default=0)
    cpus = models.FloatField(default=0)
    starting_limit = models.PositiveIntegerField(default=3)  # computers that may start at once
    providers = models.JSONField(default=list)
    versions = models.JSONField(default=dict)
    fingerprint = models.CharField(max_length=128, blank=True)  # sha256 of its certificate
    note = models.TextField(blank=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.state})"


class Pool(models.Model):
    """Computers that are alike: what they are made of, how many are kept warm, how long they live."""

    DEFAULT = "default"
    """The name of the pool that a caller gets who names none; computers without a pool are its own."""

    class Purpose(models.TextChoices):
        ANY = "any"
        HUMAN = "human"
        AGENT = "agent"

    class ResetBy(models.TextChoices):
        RESTART = "restart"
        SNAPSHOT = "snapshot"

    name = models.CharField(max_length=64, unique=True)
    provider = models.CharField(max_length=32)
    image = models.CharField(max_length=64, default="desktop")
    width = models.PositiveIntegerField(default=1280)
    height = models.PositiveIntegerField(default=720)
    memory_mb = models.PositiveIntegerField(default=1024)
    cpus = models.FloatField(default=1)
    network = models.CharField(max_length=32, blank=True)
    egress = models.JSONField(default=list)  # what its computers may reach; nothing if empty
    min_warm = models.PositiveIntegerField(default=1)
    max_warm = models.PositiveIntegerField(default=4)
    most = models.PositiveIntegerField(default=4)
    warm_ttl_s = models.PositiveIntegerField(default=3600)
    max_reuses = models.PositiveIntegerField(default=50)
    max_age_s = models.PositiveIntegerField(default=12 * 3600)
    purpose = models.CharField(max_length=8, choices=Purpose, default=Purpose.ANY)
    paused = models.BooleanField(default=False)
    failures = models.PositiveIntegerField(default=0)  # starts that failed in a row
    degraded_at = models.DateTimeField(null=True)
    degraded_cause = models.TextField(blank=True)
    reset_by = models.CharField(max_length=16, choices=ResetBy, default=ResetBy.RESTART)

    def __str__(self) -> str:
        return self.name
