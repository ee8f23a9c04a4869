"""Verbs of a recorder's sign-in (RFC 8628), and the one place that checks its token.

Codes and tokens are random; only the sha256 of what a program carries is stored. A token may send
recordings and read tasks, nothing else.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from annotation.errors import Refused
from annotation.models import Device, DeviceCode, WrongCode
from annotation.recordings.errors import TooMuch, Wrong

# No vowels and nothing that looks like something else (RFC 8628, 6.1): 20^8 codes.
ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"
CODE_LIFE = timedelta(minutes=15)
TOKEN_LIFE = timedelta(days=90)
INTERVAL_S = 5
PER_ADDRESS = 10  # sign-ins that wait, from one address
IN_ALL = 2000
WRONG_CODES = 8  # within WRONG_WINDOW, then the person has to wait
WRONG_WINDOW = timedelta(minutes=10)
SEEN_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Begun:
    """What a recorder that wants to sign in is told."""

    device_code: str
    user_code: str
    interval_s: int
    expires_in_s: int


class NoCode(Refused):
    """Nobody was shown this code, or it has expired."""


class Waiting(Refused):
    """Too many wrong codes: wait a while."""


def begin(*, device_name: str, address: str) -> Begun:
    """Start a sign-in for a recorder; raises TooMuch where too many wait already."""
    now = timezone.now()
    DeviceCode.objects.filter(expires_at__lt=now).delete()
    if (
        DeviceCode.objects.filter(address=address).count() >= PER_ADDRESS
        or DeviceCode.objects.count() >= IN_ALL
    ):
        raise TooMuch(
            "slow_down",
            "too many sign-ins wait from here: confirm one of them, or try again in a while",
            retry_after_s=60,
        )
    code = secrets.token_urlsafe(32)
    user_code = "".join(secrets.choice(ALPHABET) for _ in range(8))
    DeviceCode.objects.create(
        code_hash=_hash(code), user_code=user_code, device_name=_clean(device_name),
        address=address[:45], interval_s=INTERVAL_S, expires_at=now + CODE_LIFE,
    )  # fmt: skip
    return Begun(code, user_code, INTERVAL_S, int(CODE_LIFE.total_seconds()))


def poll(device_code: str) -> str:
    """Return the access token of an approved sign-in, once.

    Raises Wrong with RFC 8628's codes: authorization_pending, slow_down, expired_token, access_denied.
    """
    with transaction.atomic():
        rows = DeviceCode.objects.select_for_update().filter(code_hash=_hash(device_code))
        row = rows.first()
        now = timezone.now()
        if row is None or row.expires_at <= now:
            raise Wrong("expired_token", "this sign-in is over: begin another one")
        if row.status == DeviceCode.Status.REFUSED:
            row.delete()
            refused = True
        elif row.status == DeviceCode.Status.APPROVED:
            token = _signed_in(row)
            row.delete()
            return token
        else:
            refused = False
            early = row.polled_at is not None and now - row.polled_at < timedelta(
                seconds=row.interval_s - 1
            )
            if early:
                row.interval_s = min(60, row.interval_s + 5)
            row.polled_at = now
            row.save(update_fields=["polled_at", "interval_s"])
    if refused:
        raise Wrong("access_denied", "the sign-in was refused in the browser")
    if early:
        raise Wrong("slow_down", f"ask at most every {row.interval_s} seconds")
    raise Wrong("authorization_pending", "the code has not been confirmed in the browser yet")


def find(user_code: str, *, by: User) -> DeviceCode:
    """Return the sign-in that waits under the code somebody entered; raises NoCode, Waiting."""
    wanted = "".join(letter for letter in user_code.upper() if letter in ALPHABET)
    now = timezone.now()
    wrong = WrongCode.objects.filter(user=by, at__gt=now - WRONG_WINDOW)
    if wrong.count() >= WRONG_CODES:
        raise Waiting("too many wrong codes: try again in ten minutes")
    row = DeviceCode.objects.filter(
        user_code=wanted, status=DeviceCode.Status.PENDING, expires_at__gt=now
    ).first()
    if row is None:
        WrongCode.objects.filter(user=by, at__lte=now - WRONG_WINDOW).delete()
        WrongCode.objects.create(user=by)
        raise NoCode("no recorder waits under this code: look again, or begin anew in the recorder")
    return row


def decide(user_code: str, *, by: User, approve: bool) -> DeviceCode:
    """Let a recorder in as `by`, or turn it away; raises NoCode, Waiting."""
    row = find(user_code, by=by)
    status = DeviceCode.Status.APPROVED if approve else DeviceCode.Status.REFUSED
    waiting = DeviceCode.objects.filter(pk=row.pk, status=DeviceCode.Status.PENDING)
    if not waiting.update(status=status, user=by):
        raise NoCode("this sign-in was decided a moment ago")
    row.refresh_from_db()
    return row


def device_of(token: str) -> Device | None:
    """Return the device that a bearer token belongs to; None where it is to be refused."""
    now = timezone.now()
    row = (
        Device.objects.filter(
            token_hash=_hash(token), revoked_at=None, expires_at__gt=now, user__is_active=True
        )
        .select_related("user")
        .first()
    )
    if row is not None and (row.seen_at is None or now - row.seen_at > SEEN_EVERY):
        Device.objects.filter(pk=row.pk).update(seen_at=now)
    return row


def revoke(device: Device) -> None:
    """Let a device's token end now; what it has sent stays."""
    Device.objects.filter(pk=device.pk, revoked_at=None).update(revoked_at=timezone.now())


def _signed_in(row: DeviceCode) -> str:
    token = secrets.token_urlsafe(32)
    Device.objects.create(
        user=row.user, name=row.device_name, token_hash=_hash(token),
        expires_at=timezone.now() + TOKEN_LIFE,
    )  # fmt: skip
    return token


def _clean(name: str) -> str:
    shown = "".join(letter for letter in name if letter.isprintable()).strip()
    return shown[:60] or "recorder"


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
