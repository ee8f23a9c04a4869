"""What was done with computers, by whom and when: rows that are only ever added."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class AuditEvent(models.Model):
    """One thing that happened; PostgreSQL itself refuses to change or delete it.

    No foreign keys: an event outlives the rows it speaks of. `actor` is "user:ID" or the part of
    the platform that acted.
    """

    at = models.DateTimeField(db_default=Now())
    kind = models.CharField(max_length=48)
    actor = models.CharField(max_length=160)
    host = models.CharField(max_length=128, blank=True)
    sandbox = models.CharField(max_length=64, blank=True)  # its name
    lease = models.BigIntegerField(null=True)  # its id
    epoch = models.PositiveIntegerField(null=True)
    detail = models.JSONField(default=dict)

    class Meta:
        indexes = [
            models.Index(fields=["at"], name="audit_at"),
            models.Index(fields=["sandbox", "at"], name="audit_of_sandbox"),
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.kind} by {self.actor}"
