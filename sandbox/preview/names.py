"""The host name of a service: pPORT-LEASE-PROOF below PREVIEW_HOST. It is no secret, only canonical."""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass

from django.conf import settings
from django.utils.crypto import salted_hmac

_LABEL = re.compile(r"p([1-9][0-9]{0,4})-([1-9][0-9]{0,17})-([0-9a-f]{16})")
_LOCAL = ("localhost", "127.0.0.1", "[::1]")


class PreviewsOff(Exception):
    """Services can't be opened here; the message names the setting."""


@dataclass(frozen=True, slots=True)
class Place:
    """One port of one lease's computer."""

    lease: int
    port: int


def origin_of(place: Place, *, scheme: str, product: str) -> str:
    """Return the origin of a service, beside the product at `product` ("host" or "host:port").

    Raises PreviewsOff.
    """
    below = settings.PREVIEW_HOST
    if not below:
        raise PreviewsOff("set PREVIEW_HOST to a domain of its own to open what computers serve")
    name, port = _split(product)
    if below == "localhost" and name not in _LOCAL:
        raise PreviewsOff(f"PREVIEW_HOST is localhost, which does not lead from {name} to here")
    label = f"p{place.port}-{place.lease}-{_proof(place)}"
    return f"{scheme}://{label}.{below}{port}"


def is_preview(host: str) -> bool:
    """Whether a request with this Host is for what a computer serves, and never for the product."""
    below = settings.PREVIEW_HOST
    return bool(below) and _split(host.lower())[0].endswith(f".{below}")


def place_of(host: str) -> Place | None:
    """Return what a Host means; None if nobody gave out that name."""
    if not is_preview(host):
        return None
    label = _split(host.lower())[0].removesuffix(f".{settings.PREVIEW_HOST}")
    found = _LABEL.fullmatch(label)
    if found is None:
        return None
    place = Place(lease=int(found[2]), port=int(found[1]))
    if place.port > 65535 or not hmac.compare_digest(found[3], _proof(place)):
        return None
    return place


def _split(host: str) -> tuple[str, str]:
    """Return (name, ":port" or "")."""
    name, colon, port = host.rpartition(":")
    return (name, colon + port) if colon and port.isdecimal() else (host, "")


def _proof(place: Place) -> str:
    text = f"{place.lease}:{place.port}"
    return salted_hmac("sandbox.preview", text, algorithm="sha256").hexdigest()[:16]
