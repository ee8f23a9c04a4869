"""One-time proofs that a caller acts for a lease: signed by web and workers, used up at a gateway."""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import asdict, dataclass

from django.core import signing

TTL_S = 30
"""How long a token opens a connection; the clocks of two machines may differ by less."""

MOST = 100_000
"""Tokens that a gateway remembers; more within TTL_S are refused rather than forgotten."""

_SALT = "sandbox.gateway"


class BadToken(Exception):
    """A token is not signed by us, too old, used already or for something else."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What a token is for; `mode` is "view" or "control"."""

    lease: int
    sandbox: str
    epoch: int
    service: str
    mode: str


def sign(claims: Claims) -> str:
    """Return a fresh token; it opens one connection within TTL_S."""
    once = secrets.token_urlsafe(12)
    return signing.dumps([once, asdict(claims)], salt=_SALT)


class Used:
    """The tokens that one gateway has seen, as long as they would still be valid."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._lock = threading.Lock()

    def redeem(self, token: str) -> Claims:
        """Return what a token is for and use it up; raises BadToken."""
        try:
            once, claims = signing.loads(token, salt=_SALT, max_age=TTL_S)
            found = Claims(**claims)
        except signing.SignatureExpired:
            raise BadToken(f"the token is older than {TTL_S} s: do the clocks differ?") from None
        except (signing.BadSignature, ValueError, TypeError):
            raise BadToken(
                "the token is not of this installation: is SECRET_KEY the same?"
            ) from None
        now = time.monotonic()
        with self._lock:
            self._forget(now)
            if once in self._until:
                raise BadToken("the token was used before")
            if len(self._until) >= MOST:
                raise BadToken("too many tokens at once: try again")
            # A clock that is ahead makes a token live longer than its TTL here.
            self._until[once] = now + 2 * TTL_S
        return found

    def _forget(self, now: float) -> None:
        for once, until in list(self._until.items())[:64]:
            if until > now:
                return  # the rest is younger
            del self._until[once]
