"""Deployments in the admin."""

from __future__ import annotations

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from agent import deployments
from agent.models import Deployment


@admin.register(Deployment)
class DeploymentAdmin(admin.ModelAdmin):
    """Named policies; the partner is set by an action, a checkpoint by promoting it."""

    list_display = ["name", "kind", "reads", "dialect", "candidates", "version", "is_partner"]
    list_filter = ["kind", "reads"]
    search_fields = ["name", "version"]
    readonly_fields = ["is_partner", "updated_at"]
    actions = ["make_partner"]

    @admin.action(description="Make the partner of new sessions")
    def make_partner(self, request: HttpRequest, queryset: QuerySet[Deployment]) -> None:
        if queryset.count() != 1:
            self.message_user(request, "Choose exactly one deployment.", messages.ERROR)
            return
        chosen = deployments.set_partner(queryset.get())
        self.message_user(request, f"{chosen.name} is the partner of new sessions.")
