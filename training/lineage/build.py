"""From a key to its graph: all that it came from, and all that came from it."""

from __future__ import annotations

from training.lineage import facts, links
from training.lineage.graph import Edge, Graph, Key, Node, downstream, fold, upstream

LIMIT = 150
"""How many things that came of it a picture shows, the nearest ones. What it came from is all there."""


def graph_of(focus: Key, *, limit: int | None = LIMIT) -> Graph:
    """Return the lineage of a checkpoint, a dataset or a session; as many queries however deep it is.

    Sessions are folded into counts by task and pseudonym. So are the checkpoints of one run that
    nothing was made of. `limit` is how many things that came of it are shown, None all.
    """
    edges = links.load()
    if focus.kind == "session":
        edges += facts.datasets_with(focus.pk)
    before, forth = set(upstream(edges, [focus])), downstream(edges, [focus])
    after = set(forth[:limit])
    chosen = [
        edge
        for edge in edges
        if {edge.source, edge.target} <= before | {focus}
        or {edge.source, edge.target} <= after | {focus}
    ]
    nodes = facts.described({focus} | before | after)
    _join(nodes, chosen, facts.played_in(_pks("rollout", before)), [])
    _join(nodes, chosen, *facts.sources_of(_pks("dataset", before | {focus})))
    more, uses = facts.uses_of(_pks("checkpoint", after | {focus}), focus)
    # What an RL run plays for itself is among its sources already.
    _join(nodes, chosen, more, [edge for edge in uses if edge.target not in before])
    players = {edge.source for edge in chosen} - set(nodes)
    nodes |= facts.described(players)
    chosen = [edge for edge in chosen if edge.source in nodes and edge.target in nodes]
    used = {edge.source for edge in chosen}
    groups = {
        edge.target: Key("checkpoints", edge.source.pk)
        for edge in chosen
        if edge.source.kind == "run" and edge.target not in used and edge.target != focus
    }
    nodes, chosen = fold(nodes, chosen, groups, facts.folded)
    people = {
        who for node in nodes.values() if node.kind == "sessions" for _, who, _ in node.counts
    }
    return Graph(
        focus, tuple(nodes.values()), tuple(chosen), tuple(sorted(people)), len(forth[len(after) :])
    )


def _join(nodes: dict[Key, Node], edges: list[Edge], more: list[Node], further: list[Edge]) -> None:
    nodes |= {node.key: node for node in more}
    known = {(edge.source, edge.target) for edge in edges}
    edges += [edge for edge in further if (edge.source, edge.target) not in known]


def _pks(kind: str, keys: set[Key]) -> list[int]:
    return sorted(key.pk for key in keys if key.kind == kind)
