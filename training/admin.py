"""Training in the Django admin: to look at; what changes a row is done on the training pages."""

from __future__ import annotations

from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html

from training.models import (
    Calibration,
    Checkpoint,
    Dataset,
    DatasetEntry,
    Episode,
    Evaluation,
    Iteration,
    MergeSource,
    Metric,
    MixedDataset,
    Promotion,
    RewardModel,
    Rollout,
    RolloutWorker,
    Run,
)


class ReadOnly(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows that only verbs write."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(Dataset)
class DatasetAdmin(ReadOnly):
    list_display = ("name", "pool", "trajectories", "steps", "frozen_at", "created_by", "page")
    list_filter = ("pool",)
    search_fields = ("name", "sha256")
    actions = ("launch_run",)

    @admin.display(description="")
    def page(self, row: Dataset) -> str:
        return format_html(
            '<a href="{}">Open</a> · <a href="{}?dataset={}">Launch {} run</a>',
            reverse("training:dataset", args=[row.pk]),
            reverse("training:new-run"),
            row.pk,
            row.pool.upper(),
        )

    @admin.action(description="Launch SFT run", permissions=["view"])
    def launch_run(self, request: HttpRequest, rows: QuerySet[Dataset]) -> HttpResponse | None:
        if rows.count() != 1:
            self.message_user(request, "Choose one dataset: a run has one.", messages.ERROR)
            return None
        return HttpResponseRedirect(f"{reverse('training:new-run')}?dataset={rows.get().pk}")


@admin.register(Run)
class RunAdmin(ReadOnly):
    list_display = ("name", "kind", "state", "step", "total_steps", "dataset", "created_at", "page")
    list_filter = ("state", "kind")
    search_fields = ("name",)

    @admin.display(description="")
    def page(self, row: Run) -> str:
        return format_html('<a href="{}">Watch</a>', reverse("training:run", args=[row.pk]))


@admin.register(MixedDataset)
class MixedDatasetAdmin(ReadOnly):
    list_display = ("run", "dataset", "weight")
    list_filter = ("run",)


@admin.register(MergeSource)
class MergeSourceAdmin(ReadOnly):
    list_display = ("run", "checkpoint", "weight")
    list_filter = ("run",)


@admin.register(Checkpoint)
class CheckpointAdmin(ReadOnly):
    list_display = ("version", "role", "run", "step", "parent", "erased_at", "created_at", "page")
    list_filter = ("role",)
    search_fields = ("version",)
    actions = ("promote",)

    @admin.display(description="")
    def page(self, row: Checkpoint) -> str:
        opened = format_html('<a href="{}">Open</a>', reverse("training:checkpoint", args=[row.pk]))
        if row.role != Checkpoint.Role.POLICY:
            return opened
        promote = reverse("training:promote", args=[row.pk])
        return format_html('{} · <a href="{}">Promote</a>', opened, promote)

    @admin.action(description="Promote", permissions=["view"])
    def promote(self, request: HttpRequest, rows: QuerySet[Checkpoint]) -> HttpResponse | None:
        if rows.count() != 1:
            self.message_user(request, "Choose one checkpoint to promote.", messages.ERROR)
            return None
        return HttpResponseRedirect(reverse("training:promote", args=[rows.get().pk]))


@admin.register(Promotion)
class PromotionAdmin(ReadOnly):
    list_display = ("checkpoint", "deployment", "previous", "by", "at")


@admin.register(Evaluation)
class EvaluationAdmin(ReadOnly):
    list_display = ("name", "suite", "rollout", "version", "reads", "created_at", "page")
    list_filter = ("suite",)
    search_fields = ("name",)

    @admin.display(description="")
    def page(self, row: Evaluation) -> str:
        return format_html('<a href="{}">Open</a>', reverse("training:evaluation", args=[row.pk]))


@admin.register(Iteration)
class IterationAdmin(ReadOnly):
    list_display = ("name", "number", "state", "phase", "deployment", "policy", "candidate", "page")
    list_filter = ("state",)
    search_fields = ("name",)
    list_select_related = ("deployment", "policy", "candidate")

    @admin.display(description="")
    def page(self, row: Iteration) -> str:
        return format_html('<a href="{}">Watch</a>', reverse("training:iteration", args=[row.pk]))


@admin.register(RewardModel)
class RewardModelAdmin(ReadOnly):
    list_display = ("name", "kind", "deployment", "gates", "created_at", "page")
    list_filter = ("kind", "gates")

    @admin.display(description="")
    def page(self, row: RewardModel) -> str:
        return format_html('<a href="{}">Open</a>', reverse("training:reward-model", args=[row.pk]))


@admin.register(Calibration)
class CalibrationAdmin(ReadOnly):
    list_display = ("reward_model", "state", "version", "total", "created_at", "by", "page")
    list_filter = ("state",)

    @admin.display(description="")
    def page(self, row: Calibration) -> str:
        return format_html('<a href="{}">Open</a>', reverse("training:calibration", args=[row.pk]))


@admin.register(DatasetEntry)
class DatasetEntryAdmin(ReadOnly):
    list_display = ("dataset", "line", "session", "trajectory_sha256")
    list_filter = ("dataset",)


@admin.register(Metric)
class MetricAdmin(ReadOnly):
    list_display = ("run", "step", "values")
    list_filter = ("run",)


@admin.register(Rollout)
class RolloutAdmin(ReadOnly):
    list_display = ("name", "purpose", "state", "deployment", "total", "created_at", "page")
    list_filter = ("state", "purpose")
    search_fields = ("name",)

    @admin.display(description="")
    def page(self, row: Rollout) -> str:
        return format_html('<a href="{}">Watch</a>', reverse("training:rollout", args=[row.pk]))


@admin.register(Episode)
class EpisodeAdmin(ReadOnly):
    list_display = ("__str__", "rollout", "state", "reward", "steps", "attempts", "worker", "page")
    list_filter = ("state", "family")
    search_fields = ("task",)
    list_select_related = ("rollout",)

    @admin.display(description="")
    def page(self, row: Episode) -> str:
        return format_html('<a href="{}">Open</a>', reverse("training:episode", args=[row.pk]))


@admin.register(RolloutWorker)
class RolloutWorkerAdmin(ReadOnly):
    list_display = ("name", "host", "environments", "slots", "heartbeat_at", "stopped_at")
