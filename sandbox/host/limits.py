"""Which limits a computer ran into, in a few words for its row. What a computer chose is bounded."""

from __future__ import annotations

from sandbox.capabilities import Limited
from sandbox.provider import Handle

NAMED = 3
"""So many of the places that it was not let to are named; the others are counted."""

_LONGEST = 80


def ran_into(provider: Limited, handle: Handle) -> list[str]:
    """Return what the kernel counted and where the computer was not let; [] if nothing."""
    found = list(provider.causes(handle))
    refused = provider.refused(handle)
    if refused:
        named = ", ".join(_place(one) for one in refused[:NAMED])
        more = f" and {len(refused) - NAMED} more" if len(refused) > NAMED else ""
        found.append(f"was not let to {named}{more}")
    return found


def _place(refusal: dict[str, object]) -> str:
    text = f"{refusal.get('host')}:{refusal.get('port')}"
    return "".join(c if c.isprintable() else "?" for c in text[:_LONGEST])
