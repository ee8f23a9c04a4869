"""The value of a lineage: keys, nodes, edges, and the walks over them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

SAID = 12
"""How many pseudonyms a page names; the JSON has all."""


class Key(NamedTuple):
    """What a node stands for: `kind` is checkpoint, run, dataset, session, rollout, deployment or

    evaluation, or the plural of one where `pk` names what was folded (a dataset's sessions).
    """

    kind: str
    pk: int

    def __str__(self) -> str:
        return f"{self.kind}-{self.pk}"


@dataclass(frozen=True, slots=True)
class Edge:
    """That `target` was made from, or is served or judged by means of, `source`."""

    source: Key
    target: Key
    label: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """One thing of the picture. `counts` tells what was folded: (task, who, how many)."""

    key: Key
    label: str
    detail: str = ""
    url: str = ""
    erased: bool = False
    counts: tuple[tuple[str, str, int], ...] = ()

    @property
    def kind(self) -> str:
        return self.key.kind


@dataclass(frozen=True, slots=True)
class Graph:
    """A picture's nodes and edges; `focus` is what was asked about."""

    focus: Key
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    people: tuple[str, ...] = field(default=())  # pseudonyms, sorted
    further: int = 0  # things that came of it and are too far away to be in it

    @property
    def sessions(self) -> int:
        """How many sessions are counted, once per dataset that holds them."""
        return sum(n for node in self.nodes if node.kind == "sessions" for *_, n in node.counts)

    @property
    def who(self) -> str:
        """The people in words; of many only the first ones."""
        rest = len(self.people) - SAID
        return ", ".join(self.people[:SAID]) + (f" and {rest} more" if rest > 0 else "")

    def to_json(self) -> dict[str, Any]:
        """Return what the download holds."""
        return {
            "focus": str(self.focus),
            "people": list(self.people),
            "further": self.further,
            "nodes": [
                {**asdict(node), "key": str(node.key), "kind": node.kind} for node in self.nodes
            ],
            "edges": [
                {"source": str(one.source), "target": str(one.target), "label": one.label}
                for one in self.edges
            ],
        }


def upstream(edges: Iterable[Edge], start: Iterable[Key]) -> list[Key]:
    """Return all that `start` was made from, the nearest first."""
    return _reach(edges, start, lambda edge: (edge.target, edge.source))


def downstream(edges: Iterable[Edge], start: Iterable[Key]) -> list[Key]:
    """Return all that was made from `start`, the nearest first."""
    return _reach(edges, start, lambda edge: (edge.source, edge.target))


def fold(
    nodes: Mapping[Key, Node],
    edges: Iterable[Edge],
    groups: Mapping[Key, Key],
    told: Callable[[Key, list[Node]], Node],
) -> tuple[dict[Key, Node], list[Edge]]:
    """Put nodes of a group into one; `groups` maps a node to its group's key, alone it stays.

    An edge to a folded node leads to its group, once.
    """
    members: dict[Key, list[Node]] = defaultdict(list)
    for key, group in groups.items():
        if key in nodes:
            members[group].append(nodes[key])
    folded = {node.key: group for group, some in members.items() if len(some) > 1 for node in some}
    kept = {key: node for key, node in nodes.items() if key not in folded}
    for group, some in members.items():
        if len(some) > 1:
            kept[group] = told(group, some)
    moved = dict.fromkeys(
        Edge(folded.get(one.source, one.source), folded.get(one.target, one.target), one.label)
        for one in edges
    )
    return kept, list(moved)


def _reach(
    edges: Iterable[Edge], start: Iterable[Key], way: Callable[[Edge], tuple[Key, Key]]
) -> list[Key]:
    steps: dict[Key, list[Key]] = defaultdict(list)
    for edge in edges:
        here, there = way(edge)
        steps[here].append(there)
    first = list(dict.fromkeys(start))
    seen, order = set(first), list(first)
    for here in order:  # it grows while it is walked
        for there in steps[here]:
            if there not in seen:
                seen.add(there)
                order.append(there)
    return order[len(first) :]
