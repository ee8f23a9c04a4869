"""Who was made from whom, over all checkpoints, runs and datasets: a handful of queries in all.

Light rows of everything rather than one query per generation: a flywheel's chain grows for ever.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Q

from training.lineage.graph import Edge, Key
from training.models import Checkpoint, DatasetEntry, Episode, MergeSource, MixedDataset, Run


def load() -> list[Edge]:
    """Return every edge between datasets, rollouts, runs and checkpoints; four queries."""
    edges = []
    bases: dict[int, int | None] = {}
    runs = Run.objects.values_list("pk", "base", "critic", "dataset", "rollout")
    for pk, base, critic, dataset, rollout in runs.order_by("pk"):
        run, bases[pk] = Key("run", pk), base
        for kind, found, label in (
            ("checkpoint", base, "base"),
            ("checkpoint", critic, "critic"),
            ("dataset", dataset, "learns"),
            ("rollout", rollout, "learns"),
        ):
            if found is not None:
                edges.append(Edge(Key(kind, found), run, label))
    for run_id, dataset, weight in MixedDataset.objects.values_list("run", "dataset", "weight"):
        edges.append(Edge(Key("dataset", dataset), Key("run", run_id), f"mixed in, {weight:g}"))
    for run_id, source, weight in MergeSource.objects.values_list("run", "checkpoint", "weight"):
        edges.append(Edge(Key("checkpoint", source), Key("run", run_id), f"merged, {weight:g}"))
    for pk, run_id, parent in Checkpoint.objects.order_by("pk").values_list("pk", "run", "parent"):
        made = Key("checkpoint", pk)
        if run_id is not None:
            edges.append(Edge(Key("run", run_id), made))
        if parent is not None and (run_id is None or bases.get(run_id) != parent):
            edges.append(Edge(Key("checkpoint", parent), made, "parent"))
    return edges


def played_by(checkpoints: Collection[int]) -> list[Key]:
    """Return the rollouts with episodes that these checkpoints played, and the datasets with such.

    An RL run's own episodes count whole: weights between two checkpoints have played them as well.
    """
    if not checkpoints:
        return []
    versions = Checkpoint.objects.filter(pk__in=checkpoints).values_list("version", flat=True)
    own = Run.objects.filter(kind=Run.Kind.PPO, checkpoints__in=checkpoints).values("rollout")
    played = Episode.objects.filter(Q(versions__has_any_keys=list(versions)) | Q(rollout__in=own))
    rollouts = played.order_by().values_list("rollout", flat=True).distinct()
    held = DatasetEntry.objects.filter(episode__in=played.order_by().values("pk"))
    datasets = held.order_by().values_list("dataset", flat=True).distinct()
    return [Key("rollout", pk) for pk in rollouts] + [Key("dataset", pk) for pk in datasets]
