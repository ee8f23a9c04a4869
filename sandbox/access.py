"""Who may look at a computer and who may work on it: the only way from a request to a Lease."""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.core.exceptions import PermissionDenied

from sandbox.models import Lease, StreamTicket

Mode = StreamTicket.Mode


def lease_for(user: AbstractBaseUser | AnonymousUser, lease_id: int, *, mode: str) -> Lease:
    """Return the lease that `user` may open in `mode`.

    Raises Lease.DoesNotExist for whoever may not even know of it, PermissionDenied for a viewer
    who asks for control.
    """
    lease = Lease.objects.select_related("sandbox").get(pk=lease_id)
    if may(user, lease, mode=mode):
        return lease
    if may(user, lease, mode=Mode.VIEW):
        raise PermissionDenied("only the owner of the lease may control this computer")
    raise Lease.DoesNotExist(f"no lease {lease_id}")


def may(user: AbstractBaseUser | AnonymousUser, lease: Lease, *, mode: str) -> bool:
    """Whether `user` may open the screen of `lease`: the owner both ways, reviewers and staff to view."""
    if not isinstance(user, User) or not user.is_active:
        return False
    if lease.owner_id == user.pk:
        return mode in Mode.values
    trusted = user.is_staff or user.groups.filter(name="reviewer").exists()
    return mode == Mode.VIEW and trusted
