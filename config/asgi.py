"""The web's entry: the desktop relay, Channels' sockets and Django's pages in one process."""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from django.core.asgi import get_asgi_application

pages = get_asgi_application()  # loads the apps; what follows imports models

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator

from annotation.routing import websocket_urlpatterns
from sandbox.preview.app import app as preview
from sandbox.preview.names import is_preview
from sandbox.screen.relay import app as relay
from sandbox.screen.relay import terminal

channels = ProtocolTypeRouter(
    {
        "http": pages,
        "websocket": AllowedHostsOriginValidator(
            AuthMiddlewareStack(URLRouter(websocket_urlpatterns))
        ),
    }
)


def _host(scope: dict[str, Any]) -> str:
    return dict(scope["headers"]).get(b"host", b"").decode("latin-1")


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Route one connection; the relay stands outside Channels, its bytes need no layer."""
    if scope["type"] in ("http", "websocket") and is_preview(_host(scope)):
        await preview(scope, receive, send)
    elif scope["type"] == "websocket" and scope["path"] == "/ws/desktop/":
        await relay(scope, receive, send)
    elif scope["type"] == "websocket" and scope["path"] == "/ws/terminal/":
        await terminal(scope, receive, send)
    else:
        await channels(scope, receive, send)
