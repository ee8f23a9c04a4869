"""What templates need to know about the person looking, and how to write an action or a time."""

from __future__ import annotations

from typing import Any

from django import template
from django.conf import settings
from django.http import HttpRequest

from annotation.hand import commands

register = template.Library()

DEMO_ACCOUNTS = ("annotator", "reviewer", "admin")


@register.simple_tag(takes_context=True)
def navigation(context: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the links of the header that the person may follow, with the current one marked."""
    request: HttpRequest | None = context.get("request")
    user = getattr(request, "user", None)
    if request is None or user is None or not user.is_authenticated:
        return []
    groups = set(user.groups.values_list("name", flat=True))
    links = [
        ("Queue", "/queue/", user.is_staff or "annotator" in groups),
        ("Reviews", "/reviews/", user.is_staff or "reviewer" in groups),
        ("Recordings", "/recordings/", True),
        ("Tasks", "/tasks/", user.is_staff),
        ("Training", "/training/runs/", user.is_staff),
        ("Fleet", "/fleet/", user.is_staff),
        ("Admin", "/admin/", user.is_staff),
    ]
    return [
        {"label": label, "url": url, "current": _within(request.path, url)}
        for label, url, allowed in links
        if allowed
    ]


def _within(path: str, url: str) -> bool:
    root = "/" + url.split("/")[1] + "/"
    return path.startswith(root) or (root == "/queue/" and path.startswith("/sessions/"))


@register.simple_tag
def demo_accounts() -> tuple[str, ...]:
    """Return the names of the demo accounts, none outside the demo."""
    return DEMO_ACCOUNTS if getattr(settings, "DEMO", False) else ()


@register.filter
def command(record: object) -> str:
    """Write a recorded action as people type it."""
    return commands.describe(record)


@register.filter
def duration(milliseconds: int | None) -> str:
    """Write milliseconds as "42 s", "3 min 5 s" or "2 h 4 min"."""
    seconds = (milliseconds or 0) // 1000
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"
