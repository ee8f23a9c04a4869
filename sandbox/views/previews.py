"""What a leased computer serves: which ports, and a ticket to open one in the browser."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from sandbox import access
from sandbox.capabilities import Ports
from sandbox.leasing import leases
from sandbox.leasing.leases import LeaseOver
from sandbox.models import Lease
from sandbox.preview import entry, names
from sandbox.preview.app import ENTER
from sandbox.preview.names import Place, PreviewsOff
from sandbox.provider import SandboxError

_MOST = 50


@never_cache
@require_GET
def ports(request: HttpRequest, lease_id: int) -> JsonResponse:
    """List the ports that programs of the computer listen on; none where it has no such thing."""
    lease = _lease(request, lease_id)
    if isinstance(lease, JsonResponse):
        return lease
    try:
        desktop = leases.connect(lease)
        try:
            found = desktop.ports()[:_MOST] if isinstance(desktop, Ports) else []
        finally:
            desktop.close()
    except SandboxError as error:
        return JsonResponse({"error": str(error)}, status=409)
    return JsonResponse({"ports": found})


@never_cache
@require_POST
def open_port(request: HttpRequest, lease_id: int, port: int) -> JsonResponse:
    """Give the lease's owner a ticket, and the address to post it to."""
    lease = _lease(request, lease_id)
    if isinstance(lease, JsonResponse):
        return lease
    if not 0 < port < 1 << 16:
        return JsonResponse({"error": f"there is no port {port}"}, status=404)
    try:
        origin = names.origin_of(
            Place(lease=lease.pk, port=port),
            scheme=request.scheme or "http",
            product=request.get_host(),
        )
        token = entry.issue(
            user=request.user,
            lease=lease,
            session_key=request.session.session_key or "",
        )
    except PermissionDenied as error:
        return JsonResponse({"error": str(error)}, status=403)
    except (LeaseOver, PreviewsOff) as error:
        return JsonResponse({"error": str(error)}, status=409)
    return JsonResponse({"url": origin + ENTER, "ticket": token})


def _lease(request: HttpRequest, lease_id: int) -> Lease | JsonResponse:
    if not request.user.is_authenticated:
        return JsonResponse({"error": "sign in first"}, status=401)
    try:
        return access.lease_for(request.user, lease_id, mode=access.Mode.CONTROL)
    except Lease.DoesNotExist as error:
        return JsonResponse({"error": str(error)}, status=404)
    except PermissionDenied as error:
        return JsonResponse({"error": str(error)}, status=403)
