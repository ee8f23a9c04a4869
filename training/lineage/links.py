"""Who was made from whom, over all checkpoints, runs and datasets: a handful of queries in all.

Light rows of everything rather than one query per generation: a flywheel's chain grows for ever.
"""

from __future__ import annotations

from training.lineage.graph import Edge, Key
from training.models import Checkpoint, MergeSource, MixedDataset, Run


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
