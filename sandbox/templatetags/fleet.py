"""How the fleet's pages write states."""

from __future__ import annotations

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from sandbox.models import Sandbox

register = template.Library()

LOOKS = {
    "ready": "ok", "leased": "active", "provisioning": "queued", "resetting": "queued",
    "failed": "failed", "destroying": "paused", "gone": "",
}  # fmt: skip


@register.simple_tag
def state(sandbox: Sandbox) -> SafeString:
    """Write a computer's state as a badge; its cause is the title."""
    return format_html(
        '<span class="badge {}" title="{}">{}</span>',
        LOOKS.get(sandbox.state, ""),
        sandbox.cause,
        sandbox.state,
    )


@register.simple_tag
def bar(states: dict[str, int]) -> SafeString:
    """Write how many computers are in which state, as badges in the order of their life."""
    known = [(LOOKS[one], states[one], one) for one in LOOKS if states.get(one)]
    if not known:
        return format_html('<span class="muted">none</span>')
    return format_html_join(" ", '<span class="badge {}">{} {}</span>', known)
