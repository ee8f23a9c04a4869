"""Random names for people: what an export says instead of a user."""

from __future__ import annotations

import secrets

from django.contrib.auth.models import User

from annotation.models import Pseudonym


def of(user: User) -> str:
    """Return the user's pseudonym, made at random the first time and never derived from anything."""
    row, _ = Pseudonym.objects.get_or_create(
        user=user, defaults={"name": f"p-{secrets.token_hex(6)}"}
    )
    return row.name
