"""Tell a guest that whoever held it holds it no more, before its host comes to reset it.

A courtesy with a short deadline: the reset is what a new holder can rely on.
"""

from __future__ import annotations

import json
import logging
import threading

from django.conf import settings

from sandbox import providers
from sandbox.leasing.ending import Ended
from sandbox.provider import Handle, SandboxError

log = logging.getLogger(__name__)

WITHIN_S = 2.0
"""A guest on this machine answers in milliseconds; nobody waits longer for one that hangs."""


def raise_to(over: Ended) -> None:
    """Raise the guest's epoch to the computer's; does nothing where only the host reaches the guest.

    Through a gateway there is no way any more: it admits nobody to a lease that is over.
    """
    fields = json.loads(over.handle or "{}")
    if over.epoch is None or over.gateway or not fields:
        return
    said = threading.Thread(
        target=_tell, args=(over.provider, Handle(**fields), over.epoch), daemon=True
    )
    said.start()
    said.join(WITHIN_S)
    if said.is_alive():
        log.warning("%s has not answered yet that its lease is over", fields["name"])


def _tell(name: str, handle: Handle, epoch: int) -> None:
    try:
        provider = providers.load(name, state=settings.STATE_DIR / "sandboxes" / name)
        desktop = provider.connect(handle)
        try:
            desktop.fence(epoch)
        finally:
            desktop.close()
    except SandboxError as error:  # it is gone, or its host was faster
        log.info("%s was not told that its lease is over: %s", handle.name, error)
    except Exception:  # of a thread of its own: nobody else would hear of it
        log.exception("%s was not told that its lease is over", handle.name)
