"""Computers and leases in the admin: to look at, and to end a lease; verbs do the rest."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from sandbox.leasing import leases
from sandbox.models import InputEvent, Lease, Sandbox


class LookOnly:
    """Rows that people look at; only verbs change them."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Sandbox)
class SandboxAdmin(LookOnly, admin.ModelAdmin):
    list_display = (
        "name",
        "state",
        "provider",
        "host",
        "epoch",
        "reuse_count",
        "ready_at",
        "cause",
    )
    list_filter = ("state", "provider", "host")
    exclude = ("handle",)  # it holds the screen's password


@admin.register(Lease)
class LeaseAdmin(LookOnly, admin.ModelAdmin):
    list_display = (
        "sandbox", "epoch", "owner", "purpose", "state", "human_control", "expires_at",
        "release_reason",
    )  # fmt: skip
    list_filter = ("state", "purpose")
    list_select_related = ("sandbox", "owner")
    actions = ("end",)

    @admin.action(description="End the lease now: close its screens and reset the computer")
    def end(self, request: HttpRequest, queryset: QuerySet[Lease]) -> None:
        for lease in queryset.filter(state=Lease.State.ACTIVE):
            leases.release(lease, reason=f"ended by {request.user}", by=request.user)
            self.message_user(request, f"{lease} ended", messages.SUCCESS)


@admin.register(InputEvent)
class InputEventAdmin(LookOnly, admin.ModelAdmin):
    list_display = ("lease", "seq", "at", "kind", "x", "y", "buttons", "keysym", "down", "frame")
    raw_id_fields = ("lease",)
