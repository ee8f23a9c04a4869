"""Addresses of the hint sockets."""

from __future__ import annotations

from django.urls import path

from annotation.consumers import SessionHints

websocket_urlpatterns = [path("ws/session/<int:session_id>/", SessionHints.as_asgi())]
