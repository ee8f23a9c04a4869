"""Tickets to a screen, over HTTP."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from sandbox import access
from sandbox.leasing.leases import LeaseOver
from sandbox.models import Lease
from sandbox.screen import tickets


@never_cache
@require_POST
def ticket(request: HttpRequest, lease_id: int) -> JsonResponse:
    """Give the signed-in user a ticket for a lease; `mode` is "view" unless the form says control."""
    user = request.user
    if not user.is_authenticated:
        return JsonResponse({"error": "sign in first"}, status=401)
    mode = request.POST.get("mode", "view")
    try:
        lease = access.lease_for(user, lease_id, mode=mode)
        token = tickets.issue(
            user=user,
            lease=lease,
            mode=mode,
            session_key=request.session.session_key or "",
        )
    except Lease.DoesNotExist as error:
        return JsonResponse({"error": str(error)}, status=404)
    except PermissionDenied as error:
        return JsonResponse({"error": str(error)}, status=403)
    except LeaseOver as error:
        return JsonResponse({"error": str(error)}, status=409)
    return JsonResponse(
        {
            "ticket": token,
            "mode": mode,
            "width": lease.sandbox.width,
            "height": lease.sandbox.height,
        }
    )
