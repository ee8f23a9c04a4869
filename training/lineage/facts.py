"""What the nodes of a lineage are called, and what hangs on them; one query for each kind of row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace

from django.db.models import Count
from django.urls import reverse

from agent.models import Deployment
from annotation.models import Session
from training.lineage.graph import Edge, Key, Node
from training.models import (
    Checkpoint,
    Dataset,
    DatasetEntry,
    Episode,
    Evaluation,
    Promotion,
    Rollout,
    Run,
)

UNKNOWN = "unknown"


def described(keys: Collection[Key]) -> dict[Key, Node]:
    """Return a node for each key that has a row."""
    pks: dict[str, list[int]] = defaultdict(list)
    for key in keys:
        pks[key.kind].append(key.pk)
    nodes: list[Node] = []
    for row in Checkpoint.objects.filter(pk__in=pks["checkpoint"]).defer("metrics"):
        detail = "critic" if row.role == Checkpoint.Role.CRITIC else f"step {row.step}"
        nodes.append(
            _node("checkpoint", row, row.version, detail, erased=row.erased_at is not None)
        )
    for run in Run.objects.filter(pk__in=pks["run"]).only("name", "kind", "state"):
        nodes.append(_node("run", run, run.name, f"{run.kind.upper()}, {run.state}"))
    for data in Dataset.objects.filter(pk__in=pks["dataset"]).defer("left_out", "filters"):
        detail = f"{data.pool.upper()}, {data.trajectories} trajectories"
        nodes.append(_node("dataset", data, data.name, detail, erased=data.erased_at is not None))
    for rollout in Rollout.objects.filter(pk__in=pks["rollout"]).only("name", "purpose", "total"):
        detail = f"{rollout.purpose}, {rollout.total} episodes"
        nodes.append(_node("rollout", rollout, rollout.name, detail))
    for session in Session.objects.filter(pk__in=pks["session"]).select_related("task"):
        who, url = session.pseudonym or UNKNOWN, f"/sessions/{session.pk}/"
        label = f"session {session.pk}"
        task = session.task.external_id
        nodes.append(Node(Key("session", session.pk), label, f"{task} by {who}", url))
    return {node.key: node for node in nodes}


def sources_of(datasets: Collection[int]) -> tuple[list[Node], list[Edge]]:
    """Return what datasets hold: their sessions in counts, their rollouts, and who played those."""
    entries = DatasetEntry.objects.filter(dataset__in=datasets)
    nodes: list[Node] = []
    edges: list[Edge] = []
    people: dict[int, list[tuple[str, str, int]]] = defaultdict(list)
    for dataset, task, who, count in (
        entries.exclude(session=None)
        .values_list("dataset", "session__task__external_id", "session__pseudonym")
        .annotate(count=Count("pk"))
        .order_by("dataset", "-count", "session__task__external_id", "session__pseudonym")
    ):
        people[dataset].append((task, who or UNKNOWN, count))
    for dataset, counts in people.items():
        key = Key("sessions", dataset)
        total, names = sum(n for *_, n in counts), {who for _, who, _ in counts}
        url = reverse("training:dataset", args=[dataset])
        detail = f"of {len(names)} annotator{'s' if len(names) > 1 else ''}"
        label = f"{total} session{'s' if total > 1 else ''}"
        nodes.append(Node(key, label, detail, url, counts=tuple(counts)))
        edges.append(Edge(key, Key("dataset", dataset)))
    played: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    pairs: dict[tuple[int, int], int] = defaultdict(int)
    versions: dict[str, set[int]] = defaultdict(set)
    for dataset, rollout, family, task, said, count in (
        entries.exclude(episode=None)
        .values_list(
            "dataset", "episode__rollout", "episode__family", "episode__task", "episode__versions"
        )
        .annotate(count=Count("pk"))
        .order_by("dataset", "episode__rollout")
    ):
        pairs[dataset, rollout] += count
        played[rollout][f"{family}/{task}"] += count
        for version in said:
            versions[version].add(rollout)
    rollouts = described([Key("rollout", pk) for pk in played])
    for key, node in rollouts.items():
        told = tuple((task, "", n) for task, n in sorted(played[key.pk].items()))
        nodes.append(replace(node, counts=told))
    for (dataset, rollout), count in pairs.items():
        edges.append(Edge(Key("rollout", rollout), Key("dataset", dataset), f"{count} episodes"))
    players = Checkpoint.objects.filter(version__in=versions).values_list("pk", "version")
    for pk, version in players:
        edges += [
            Edge(Key("checkpoint", pk), Key("rollout", rollout), "played")
            for rollout in sorted(versions[version])
        ]
    return nodes, edges


def played_in(rollouts: Collection[int]) -> list[Node]:
    """Return the rollouts that runs learnt from as they came, with their episodes by task."""
    counts: dict[int, list[tuple[str, str, int]]] = defaultdict(list)
    done = Episode.objects.filter(rollout__in=rollouts, state=Episode.State.DONE)
    for rollout, family, task, count in (
        done.values_list("rollout", "family", "task")
        .annotate(count=Count("pk"))
        .order_by("rollout", "family", "task")
    ):
        counts[rollout].append((f"{family}/{task}", "", count))
    found = described([Key("rollout", pk) for pk in rollouts]).values()
    return [replace(node, counts=tuple(counts[node.key.pk])) for node in found]


def uses_of(checkpoints: Collection[int], focus: Key) -> tuple[list[Node], list[Edge]]:
    """Return where checkpoints were put to use: deployments, evaluations, and rollouts of `focus`."""
    versions = dict(Checkpoint.objects.filter(pk__in=checkpoints).values_list("version", "pk"))
    edges: dict[tuple[Key, Key], str] = {}
    nodes: list[Node] = []
    for checkpoint, deployment, at in (
        Promotion.objects.filter(checkpoint__in=checkpoints)
        .order_by("pk")
        .values_list("checkpoint", "deployment", "at")
    ):
        key = Key("checkpoint", checkpoint), Key("deployment", deployment)
        edges[key] = f"promoted {at:%Y-%m-%d}"
    served = Deployment.objects.filter(version__in=versions)
    for pk, version in served.order_by("pk").values_list("pk", "version"):
        edges[Key("checkpoint", versions[version]), Key("deployment", pk)] = "serves now"
    deployed = {target.pk for _, target in edges}
    for row in Deployment.objects.filter(pk__in=deployed).order_by("pk"):
        url = reverse("training:promotions")
        detail = (
            "the annotators' partner" if row.is_partner else f"serves {row.version or 'nothing'}"
        )
        nodes.append(Node(Key("deployment", row.pk), row.name, detail, url))
    tested = Evaluation.objects.filter(version__in=versions).order_by("pk")
    for test in tested.only("name", "suite", "version"):
        nodes.append(_node("evaluation", test, test.name, test.suite))
        edges[Key("checkpoint", versions[test.version]), Key("evaluation", test.pk)] = "evaluated"
    mine = [version for version, pk in versions.items() if focus == Key("checkpoint", pk)]
    if mine:
        said = Episode.objects.filter(versions__contains=mine)
        said = said.exclude(rollout__purpose=Rollout.Purpose.EVALUATE)  # those are shown as such
        found = set(said.values_list("rollout", flat=True).distinct())
        nodes += described([Key("rollout", pk) for pk in found]).values()
        edges |= {(focus, Key("rollout", pk)): "played" for pk in sorted(found)}
    return nodes, [Edge(source, target, label) for (source, target), label in edges.items()]


def datasets_with(session: int) -> list[Edge]:
    """Return the edges from one session to the datasets that hold it."""
    held = DatasetEntry.objects.filter(session=session).values_list("dataset", flat=True)
    return [Edge(Key("session", session), Key("dataset", pk)) for pk in held.order_by("dataset")]


def folded(group: Key, members: Iterable[Node]) -> Node:
    """Return one node for the checkpoints of a run that were never put to use."""
    some = sorted(members, key=lambda node: node.key)
    url = reverse("training:run", args=[group.pk])
    labels = ", ".join(node.label for node in some)
    return Node(
        group, f"{len(some)} checkpoints", "not used further", url,
        erased=any(node.erased for node in some), counts=((labels, "", len(some)),),
    )  # fmt: skip


def _node(kind: str, row: object, label: str, detail: str, *, erased: bool = False) -> Node:
    pk: int = row.pk  # type: ignore[attr-defined]
    return Node(Key(kind, pk), label, detail, reverse(f"training:{kind}", args=[pk]), erased)
