"""Computers, who holds them, and the tickets to their screens."""

from sandbox.models.audit import AuditEvent
from sandbox.models.fleet import Host, Pool
from sandbox.models.leases import Lease, LeaseRequest, Quota
from sandbox.models.sandboxes import Sandbox
from sandbox.models.screens import InputEvent, StreamTicket

__all__ = [
    "AuditEvent",
    "Host",
    "InputEvent",
    "Lease",
    "LeaseRequest",
    "Pool",
    "Quota",
    "Sandbox",
    "StreamTicket",
]
