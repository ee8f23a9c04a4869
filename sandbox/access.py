"""Who may look at a computer and who may work on it: the only way from a request to a Lease."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from sandbox.models import Host, Lease, Pool, Sandbox, StreamTicket

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


def is_admin(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Whether `user` may see and turn the whole fleet."""
    return isinstance(user, User) and user.is_active and user.is_staff


def staff_only(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Send who is not signed in to sign in, and refuse (403) who is not staff."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        if not is_admin(request.user):
            raise PermissionDenied("only admins see the fleet")
        return view(request, *args, **kwargs)

    return guarded


def sandbox_for(user: AbstractBaseUser | AnonymousUser, pk: int) -> Sandbox:
    """Return a computer for an admin; raises PermissionDenied or Http404."""
    _require_admin(user)
    return get_object_or_404(Sandbox.objects.select_related("pool"), pk=pk)


def lease_for_admin(user: AbstractBaseUser | AnonymousUser, pk: int) -> Lease:
    """Return any lease for an admin; raises PermissionDenied or Http404."""
    _require_admin(user)
    return get_object_or_404(Lease.objects.select_related("sandbox"), pk=pk)


def host_for(user: AbstractBaseUser | AnonymousUser, pk: int) -> Host:
    """Return a host for an admin; raises PermissionDenied or Http404."""
    _require_admin(user)
    return get_object_or_404(Host, pk=pk)


def pool_for(user: AbstractBaseUser | AnonymousUser, pk: int) -> Pool:
    """Return a pool for an admin; raises PermissionDenied or Http404."""
    _require_admin(user)
    return get_object_or_404(Pool, pk=pk)


def _require_admin(user: AbstractBaseUser | AnonymousUser) -> None:
    if not is_admin(user):
        raise PermissionDenied("only admins see the fleet")
