"""Pages of the fleet, for admins: hosts, pools, computers with live pictures, leases, who waits, failures."""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from sandbox import access, pool
from sandbox.access import staff_only
from sandbox.host import hosts
from sandbox.leasing import audit, leases
from sandbox.models import AuditEvent, Lease, LeaseRequest, Sandbox
from sandbox.operations import fleet
from sandbox.pool import pausing
from sandbox.screen import thumbnails

SHOWN = 60
HISTORY = 40


@staff_only
@require_GET
def overview(request: HttpRequest) -> HttpResponse:
    """Show everything at a glance; htmx asks for the panel again every few seconds."""
    template = "fleet/_overview.html" if request.htmx else "fleet/overview.html"  # type: ignore[attr-defined]
    waiting = LeaseRequest.objects.filter(state=LeaseRequest.State.WAITING)
    context = {
        "section": "overview",
        "hosts": fleet.hosts(),
        "pools": fleet.pools(),
        "leases": fleet.leases(),
        "waiting": waiting.count(),
        "states": fleet.STATES,
        "failures": fleet.failures()[:5],
    }
    return render(request, template, context)


@staff_only
@require_GET
def sandboxes(request: HttpRequest) -> HttpResponse:
    """Show computers as live pictures, or as a table; filtered by pool, host and state."""
    rows = Sandbox.objects.select_related("pool").order_by("host", "name")
    state, host = request.GET.get("state", ""), request.GET.get("host", "")
    wanted, words = request.GET.get("pool", ""), request.GET.get("q", "").strip()
    rows = rows.filter(state=state) if state else rows.exclude(state=Sandbox.State.GONE)
    if host:
        rows = rows.filter(host=host)
    if wanted.isdecimal() and len(wanted) < 10:
        rows = rows.filter(pool_id=int(wanted))
    if words:
        rows = rows.filter(Q(name__icontains=words) | Q(cause__icontains=words))
    page = Paginator(rows, SHOWN).get_page(request.GET.get("page"))
    holders = {
        lease.sandbox_id: lease
        for lease in Lease.objects.filter(
            state=Lease.State.ACTIVE, sandbox__in=[one.pk for one in page]
        ).select_related("owner")
    }
    query = request.GET.copy()
    query.pop("page", None)
    context = {
        "section": "sandboxes",
        "page": page,
        "computers": [(one, holders.get(one.pk)) for one in page],
        "states": Sandbox.State.values,
        "asked": {"state": state, "host": host, "pool": wanted, "q": words},
        "query": query.urlencode(),
        "hosts": fleet.hosts(),
        "pools": [one.pool for one in fleet.pools() if one.pool],
        "table": request.GET.get("as") == "table",
    }
    return render(request, "fleet/sandboxes.html", context)


@staff_only
@require_GET
def sandbox(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one computer: live, who holds it, what happened to it."""
    row = access.sandbox_for(request.user, pk)
    held = row.leases.filter(state=Lease.State.ACTIVE).select_related("owner").first()
    context = {
        "section": "sandboxes",
        "sandbox": row,
        "lease": held,
        "leases": row.leases.select_related("owner").order_by("-pk")[:10],
        "events": AuditEvent.objects.filter(sandbox=row.name).order_by("-at", "-pk")[:HISTORY],
    }
    return render(request, "fleet/sandbox.html", context)


@never_cache
@staff_only
@require_GET
def thumbnail(request: HttpRequest, pk: int) -> HttpResponse:
    """Return a small picture of what a computer shows; 404 with the reason in words if there is none."""
    row = access.sandbox_for(request.user, pk)
    try:
        return HttpResponse(thumbnails.of(row), content_type="image/jpeg")
    except thumbnails.NoPicture as error:
        return HttpResponse(str(error), status=404, content_type="text/plain; charset=utf-8")


@staff_only
@require_GET
def held(request: HttpRequest) -> HttpResponse:
    """List leases, the active ones first, and everybody who waits."""
    rows = Lease.objects.select_related("sandbox", "owner").order_by("-pk")
    if request.GET.get("all") != "1":
        rows = rows.filter(state=Lease.State.ACTIVE)
    waiting = LeaseRequest.objects.filter(state=LeaseRequest.State.WAITING)
    context = {
        "section": "leases",
        "page": Paginator(rows, SHOWN).get_page(request.GET.get("page")),
        "all": request.GET.get("all") == "1",
        "waiting": waiting.select_related("pool", "owner").order_by(
            "pool", "priority", "turn", "id"
        )[:SHOWN],
    }
    return render(request, "fleet/leases.html", context)


@staff_only
@require_GET
def failures(request: HttpRequest) -> HttpResponse:
    """List why computers failed within a day, by cause, and the newest events."""
    context = {
        "section": "failures",
        "failures": fleet.failures(),
        "events": AuditEvent.objects.order_by("-at", "-pk")[:HISTORY],
    }
    return render(request, "fleet/failures.html", context)


@staff_only
@require_POST
def end_lease(request: HttpRequest, pk: int) -> HttpResponse:
    """End a lease now: close its screens and reset the computer."""
    lease = access.lease_for_admin(request.user, pk)
    ended = leases.release(lease, reason=f"ended by {request.user}", by=request.user)
    messages.success(request, f"{lease.sandbox.name} was taken back from its holder: {ended.state}")
    return _back(request)


@staff_only
@require_POST
def kill(request: HttpRequest, pk: int) -> HttpResponse:
    """Give a computer up: its lease is lost, its host ends it and the pool starts another."""
    row = access.sandbox_for(request.user, pk)
    if pool.mark_failed(row, cause=f"killed by {request.user}"):
        messages.success(request, f"{row.name} is being ended")
    else:
        messages.error(request, f"{row.name} is {row.state}: there is nothing to end")
    return _back(request)


@staff_only
@require_POST
def reset(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for a fresh start of a computer that nobody holds."""
    row = access.sandbox_for(request.user, pk)
    if pool.request_reset(row, cause=f"reset by {request.user}"):
        messages.success(request, f"{row.name} is being started afresh")
    else:
        messages.error(request, f"{row.name} is {row.state}: only a ready one can be reset here")
    return _back(request)


@staff_only
@require_POST
def turn_host(request: HttpRequest, pk: int, verb: str) -> HttpResponse:
    """Drain a host, or let it take computers again."""
    row, who = access.host_for(request.user, pk), _who(request)
    if verb == "drain":
        hosts.drain(row, by=who)
        messages.success(request, f"{row.name} starts no more computers; leased ones may finish")
    else:
        hosts.undrain(row, by=who)
        messages.success(request, f"{row.name} takes computers again")
    return _back(request)


@staff_only
@require_POST
def turn_pool(request: HttpRequest, pk: int, verb: str) -> HttpResponse:
    """Stop a pool from starting computers, or let it go on; going on also mends a degraded one."""
    row, who = access.pool_for(request.user, pk), _who(request)
    if verb == "pause":
        pausing.pause(row, by=who)
        messages.success(request, f"{row.name} starts no more computers")
    else:
        pausing.resume(row, by=who)
        messages.success(request, f"{row.name} goes on")
    return _back(request)


def _who(request: HttpRequest) -> str:
    return audit.actor(request.user)  # type: ignore[arg-type]


def _back(request: HttpRequest) -> HttpResponse:
    """Return to the page that the button was on."""
    to = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(to, {request.get_host()}, request.is_secure()):
        return redirect(to)
    return redirect("fleet")
