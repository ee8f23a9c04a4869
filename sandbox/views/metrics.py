"""Prometheus asks here, with the token of METRICS_TOKEN; a signed-in admin may look too."""

from __future__ import annotations

import hmac

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from prometheus_client import CONTENT_TYPE_LATEST

from sandbox import access
from sandbox.operations import metrics as figures


@never_cache
@require_GET
def metrics(request: HttpRequest) -> HttpResponse:
    """Return the fleet's figures; 403 without the token."""
    said = request.headers.get("Authorization", "").removeprefix("Bearer ")
    token = str(settings.METRICS_TOKEN)
    allowed = bool(token) and hmac.compare_digest(said.encode(), token.encode())
    if not allowed and not access.is_admin(request.user):
        return HttpResponse(
            "send the token of METRICS_TOKEN as 'Authorization: Bearer ...'\n",
            status=403,
            content_type="text/plain; charset=utf-8",
        )
    return HttpResponse(figures.text(), content_type=CONTENT_TYPE_LATEST)
