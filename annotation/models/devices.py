"""The recorders of contributors: how one is signed in, and what it is trusted with until it is revoked."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Device(models.Model):
    """A recorder on somebody's computer; its token is stored as a hash and may only send recordings."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="devices"
    )
    name = models.CharField(max_length=60)
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    seen_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name


class DeviceCode(models.Model):
    """One sign-in that waits for its person (RFC 8628); deleted when it is over."""

    class Status(models.TextChoices):
        PENDING = "pending"
        APPROVED = "approved"  # the recorder may fetch its token, once
        REFUSED = "refused"

    code_hash = models.CharField(max_length=64, unique=True)
    user_code = models.CharField(max_length=8, unique=True)
    device_name = models.CharField(max_length=60)
    address = models.CharField(max_length=45)  # who asked, for the limit; gone with the row
    status = models.CharField(max_length=16, choices=Status, default=Status.PENDING)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE)
    interval_s = models.PositiveSmallIntegerField(default=5)
    polled_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()


class WrongCode(models.Model):
    """A code that somebody entered and that nobody was shown: too many, and they have to wait."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    at = models.DateTimeField(auto_now_add=True)
