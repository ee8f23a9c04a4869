"""Django's admin for tasks and sessions: for looking, and for taking a task out of the queue."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from annotation.models import (
    Application,
    Consent,
    Decision,
    Device,
    Function,
    Offer,
    Project,
    Query,
    Recording,
    RecordingReview,
    RecordingStep,
    Review,
    Session,
    Skip,
    Step,
    Task,
)
from annotation.recordings import devices
from annotation.tasks import tasks


class ReadOnly:
    """Rows that only verbs may change."""

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(Task)
class TaskAdmin(admin.ModelAdmin):
    list_display = (
        "external_id",
        "domain",
        "state",
        "priority",
        "needed",
        "instruction",
    )
    list_filter = ("state", "recorded_as", "domain")
    search_fields = ("external_id", "instruction")
    readonly_fields = ("state", "created_at")
    actions = ("retire",)

    @admin.action(description="Take out of the queue")
    def retire(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        for task in queryset:
            tasks.retire(task)


class StepInline(ReadOnly, admin.TabularInline):
    model = Step
    fields = ("index", "actor", "thought", "action", "state", "error")
    readonly_fields = fields
    extra = 0


class ReviewInline(ReadOnly, admin.TabularInline):
    model = Review
    fields = ("reviewer", "verdict", "reasons", "at")
    readonly_fields = fields
    extra = 0


@admin.register(Session)
class SessionAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ("id", "task", "author", "status", "outcome", "reward", "created_at")
    list_filter = ("status", "mode", "outcome")
    list_select_related = ("task", "author")
    search_fields = ("task__external_id", "author__username")
    inlines = (StepInline, ReviewInline)


@admin.register(Decision)
class DecisionAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ("id", "step", "kind", "by", "active_ms", "at")
    list_filter = ("kind",)
    list_select_related = ("step", "by")


@admin.register(Skip)
class SkipAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ("task", "user", "reason", "at")
    list_select_related = ("task", "user")


class RecordingStepInline(ReadOnly, admin.TabularInline):
    model = RecordingStep
    fields = ("index", "action", "thought", "provenance", "problem", "kept")
    readonly_fields = fields
    extra = 0


class RecordingReviewInline(ReadOnly, admin.TabularInline):
    model = RecordingReview
    fields = ("reviewer", "round", "verdict", "reasons", "at")
    readonly_fields = fields
    extra = 0


@admin.register(Recording)
class RecordingAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ("name", "owner", "kind", "status", "cause", "bytes", "created_at")
    list_filter = ("status", "kind")
    list_select_related = ("owner",)
    search_fields = ("name", "title", "owner__username")
    inlines = (RecordingStepInline, RecordingReviewInline)


@admin.register(Consent)
class ConsentAdmin(admin.ModelAdmin):
    """A new version is added; one that somebody may have agreed to is never changed."""

    list_display = ("version", "retain_days", "created_at")

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(Device)
class DeviceAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ("name", "user", "created_at", "seen_at", "expires_at", "revoked_at")
    list_select_related = ("user",)
    exclude = ("token_hash",)
    actions = ("revoke",)

    @admin.action(description="Sign out")
    def revoke(self, request: HttpRequest, queryset: QuerySet[Device]) -> None:
        for device in queryset:
            devices.revoke(device)


class EditedOnly:
    """Rows that are edited here, and made and deleted on the product's own pages."""

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(Project)
class ProjectAdmin(EditedOnly, admin.ModelAdmin):
    list_display = ("__str__", "writer", "synthesizer", "offer_hours", "retain_days")


@admin.register(Application)
class ApplicationAdmin(EditedOnly, admin.ModelAdmin):
    list_display = ("name", "coverage", "engagement", "penetration")
    search_fields = ("name",)


@admin.register(Function)
class FunctionAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ("name", "parent", "application", "frequency", "benefit", "transfer")
    list_filter = ("application",)
    list_select_related = ("parent", "application")
    search_fields = ("name",)


@admin.register(Query)
class QueryAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ("text", "function", "level", "difficulty", "provenance", "state", "wanted")
    list_filter = ("state", "level", "provenance", "function__application")
    list_select_related = ("function",)
    search_fields = ("text",)


@admin.register(Offer)
class OfferAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ("task", "user", "at", "expires_at")
    list_select_related = ("task", "user")
