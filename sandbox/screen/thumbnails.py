"""Small live pictures of running computers, for people who watch many at once.

Looking changes nothing: no epoch is raised, no lease renewed. A picture is kept for a moment, so that
any number of watchers cost one look at the computer.
"""

from __future__ import annotations

import io
import threading
import time
from collections import OrderedDict

from django.conf import settings
from PIL import Image

from sandbox import pool
from sandbox.leasing import leases
from sandbox.models import Lease, Sandbox
from sandbox.provider import Desktop, SandboxError

WIDTH = 320
KEPT_S = 2.0
MOST_KEPT = 512
WAIT_S = 2.0
"""How long a look waits for the others: computers that hang must not take every thread of the web."""

MOST_PIXELS = 1 << 24
"""A picture with more is not unpacked; a screen of 4K has half as many."""

_SHOWN = (Sandbox.State.READY, Sandbox.State.LEASED)

_kept: OrderedDict[int, tuple[float, bytes]] = OrderedDict()
_lock = threading.Lock()
_looking = threading.BoundedSemaphore(4)


class NoPicture(SandboxError):
    """The computer shows nothing now; the message says why."""


def of(sandbox: Sandbox) -> bytes:
    """Return a JPEG of what the computer shows, WIDTH pixels wide, at most KEPT_S old.

    Raises NoPicture.
    """
    now = time.monotonic()
    with _lock:
        known = _kept.get(sandbox.pk)
    if known is not None and now - known[0] < KEPT_S:
        return known[1]
    if sandbox.state not in _SHOWN:
        raise NoPicture(f"{sandbox.name} is {sandbox.state}")
    if not _looking.acquire(timeout=WAIT_S):
        raise NoPicture("others are being looked at that do not answer; try again in a moment")
    try:
        desktop = _desktop(sandbox)
        try:
            picture = _small(desktop.observe().png)
        finally:
            desktop.close()
    except SandboxError as error:
        raise NoPicture(str(error)) from error
    finally:
        _looking.release()
    with _lock:
        _kept[sandbox.pk] = (now, picture)
        _kept.move_to_end(sandbox.pk)
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return picture


def _desktop(sandbox: Sandbox) -> Desktop:
    lease = sandbox.leases.filter(state=Lease.State.ACTIVE).first()
    if lease is not None:
        return leases.connect(lease)
    if sandbox.host != settings.SANDBOX_HOST:
        raise NoPicture("nobody holds it, and a gateway shows only what somebody holds")
    return pool.provider(sandbox.provider).connect(sandbox.as_handle())


def _small(png: bytes) -> bytes:
    try:
        with Image.open(io.BytesIO(png), formats=("PNG",)) as picture:
            if picture.width * picture.height > MOST_PIXELS:
                raise NoPicture(f"it says that it shows {picture.width}x{picture.height}")
            picture.thumbnail((WIDTH, WIDTH))
            out = io.BytesIO()
            picture.convert("RGB").save(out, "JPEG", quality=70)
    # A chunk of no name raises SyntaxError.
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise NoPicture(f"the picture can't be read: {error}") from error
    return out.getvalue()
