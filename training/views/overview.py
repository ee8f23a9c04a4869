"""The training pages' front: the flywheel at a glance."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from training.access import staff_only
from training.data.selection import Filters
from training.data.selection import preview as count
from training.models import Checkpoint, Dataset, Evaluation, Promotion, Rollout, Run


@staff_only
def overview(request: HttpRequest) -> HttpResponse:
    promotions = Promotion.objects.select_related("checkpoint", "deployment", "by")
    datasets, rollouts = Dataset.objects.all(), Rollout.objects.all()
    kinds = set(Run.objects.filter(state=Run.State.SUCCEEDED).values_list("kind", flat=True))
    context = {
        "path": [
            ("Freeze a dataset", "training:new-dataset", "", datasets.exists()),
            ("Fine-tune a policy", "training:new-run", "kind=sft", "sft" in kinds),
            ("Let it play", "training:new-rollout", "", rollouts.exists()),
            ("Pretrain its critic", "training:new-run", "kind=value", "value" in kinds),
            ("Reinforce it", "training:new-run", "kind=ppo", "ppo" in kinds),
            ("Evaluate", "training:new-evaluation", "", Evaluation.objects.exists()),
            ("Promote", "training:checkpoints", "", promotions.exists()),
        ],
        "section": "overview",
        "preview": count(Filters()),
        "datasets": datasets.order_by("-pk")[:5],
        "runs": Run.objects.select_related("dataset", "base").order_by("-pk")[:5],
        "live": Run.objects.filter(state__in=Run.WAITING).count(),
        "rollouts": rollouts.filter(state__in=Rollout.LIVE).count(),
        "evaluations": Evaluation.objects.select_related("rollout__deployment").order_by("-pk")[:5],
        "checkpoints": Checkpoint.objects.count(),
        "promotion": promotions.order_by("-pk").first(),
    }
    return render(request, "training/overview.html", context)
