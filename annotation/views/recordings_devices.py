"""The page on which a person lets a recorder in, and sees and revokes those that are."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from annotation import access
from annotation.errors import Refused
from annotation.models import Device
from annotation.recordings import devices


@login_required
@require_http_methods(["GET", "POST"])
def device(request: HttpRequest) -> HttpResponse:
    """Show who asks for the code, then take the answer; a code in the address is only filled in."""
    asked = request.POST if request.method == "POST" else request.GET
    code, answer = asked.get("code", "")[:40], request.POST.get("answer", "")
    waiting = None
    try:
        if answer in ("approve", "refuse"):
            row = devices.decide(code, by=request.user, approve=answer == "approve")
            done = "may send recordings now" if answer == "approve" else "was refused"
            messages.success(request, f"{row.device_name} {done}.")
            return redirect("device")
        if request.method == "POST":
            waiting = devices.find(code, by=request.user)
    except Refused as error:
        status = 429 if isinstance(error, devices.Waiting) else 400
        return _page(request, code=code, error=str(error), status=status)
    return _page(request, code=code, waiting=waiting)


@login_required
@require_POST
def revoke(request: HttpRequest, device_id: int) -> HttpResponse:
    row = access.device_for(request.user, device_id)
    devices.revoke(row)
    messages.success(request, f"{row.name} is signed out.")
    return redirect("device")


def _page(request: HttpRequest, *, status: int = 200, **values: object) -> HttpResponse:
    mine = Device.objects.filter(user=request.user)
    return render(request, "recordings/device.html", {"devices": mine, **values}, status=status)
