"""The Content-Security-Policy of every page."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

# No inline script anywhere; inline style is what the viewer's canvas and the plots set on elements.
# A ticket to a service of a computer is posted to that service's own host name.
_PREVIEWS = f" http://*.{settings.PREVIEW_HOST}:* https://*.{settings.PREVIEW_HOST}:*" * bool(
    settings.PREVIEW_HOST
)
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "connect-src 'self' ws: wss:",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'" + _PREVIEWS,
        "frame-ancestors 'none'",
    )
)


class ContentSecurityPolicyMiddleware:
    """Put the policy on every response."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        return response
