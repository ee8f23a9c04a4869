"""Where the nodes of a lineage stand: in layers from left to right, with few crossings. Pure.

After Sugiyama, Tagawa and Toda (1981): layers by the longest path; an edge over several layers gets a
place in each of those between, so that it covers no node; each layer in the order of the mean place
of its neighbours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from training.lineage.graph import Edge, Graph, Key, Node

WIDTH, HEIGHT = 200, 46  # of a node, in pixels
LANE = 8  # the height of an edge that passes through a layer
ACROSS, DOWN = 48, 12  # between nodes
MARGIN = 12
LETTERS = 24  # of a label that fit
SWEEPS = 4


@dataclass(frozen=True, slots=True)
class Box:
    """A node in its place; `x`, `y` are its upper left corner."""

    node: Node
    x: int
    y: int
    here: bool

    @property
    def label(self) -> str:
        return short(self.node.label)

    @property
    def detail(self) -> str:
        return short(self.node.detail, LETTERS + 4)


@dataclass(frozen=True, slots=True)
class Curve:
    """An edge as the `d` of an SVG path; `said` tells it in words."""

    path: str
    said: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A lineage, drawn."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    curves: tuple[Curve, ...]
    box_width: int = WIDTH
    box_height: int = HEIGHT


def draw(graph: Graph) -> Picture:
    """Return the picture of a graph; the same graph gives the same picture."""
    nodes = {node.key: node for node in graph.nodes}
    layers, ways = routed(layered(sorted(nodes), graph.edges), graph.edges)
    tall = {key: HEIGHT if key in nodes else LANE for layer in layers for key in layer}
    heights = [sum(tall[key] + DOWN for key in layer) - DOWN for layer in layers]
    places: dict[Key, tuple[int, int]] = {}
    for column, layer in enumerate(layers):
        y = MARGIN + (max(heights) - heights[column]) // 2
        for key in layer:
            places[key] = (MARGIN + column * (WIDTH + ACROSS), y)
            y += tall[key] + DOWN
    middles = {key: (x, y + tall[key] // 2) for key, (x, y) in places.items()}
    curves = [
        Curve(
            _path([middles[key] for key in ways[edge]]),
            f"{nodes[edge.source].label} to {nodes[edge.target].label}"
            + (f": {edge.label}" if edge.label else ""),
        )
        for edge in graph.edges
    ]
    return Picture(
        2 * MARGIN + len(layers) * (WIDTH + ACROSS) - ACROSS,
        2 * MARGIN + max(heights),
        tuple(Box(nodes[key], *places[key], key == graph.focus) for key in places if key in nodes),
        tuple(curves),
    )


def layered(keys: Sequence[Key], edges: Sequence[Edge]) -> list[list[Key]]:
    """Return the layers; every edge leads to a later one, unless it closes a circle."""
    up: dict[Key, list[Key]] = defaultdict(list)
    down: dict[Key, list[Key]] = defaultdict(list)
    for edge in edges:
        up[edge.target].append(edge.source)
        down[edge.source].append(edge.target)
    depth = _depths(keys, up)
    # What has no past stands beside what it is for, not at the far left.
    for key in keys:
        if not up[key] and down[key]:
            depth[key] = max(min(depth[one] for one in down[key]) - 1, 0)
    layers: list[list[Key]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    for key in keys:
        layers[depth[key]].append(key)
    return [layer for layer in layers if layer]


def routed(
    layers: list[list[Key]], edges: Sequence[Edge]
) -> tuple[list[list[Key]], dict[Edge, list[Key]]]:
    """Return the layers in order, with a lane for each edge that passes, and every edge's way."""
    layers = [list(layer) for layer in layers]
    depth = {key: at for at, layer in enumerate(layers) for key in layer}
    ways: dict[Edge, list[Key]] = {}
    up: dict[Key, list[Key]] = defaultdict(list)
    down: dict[Key, list[Key]] = defaultdict(list)
    for number, edge in enumerate(edges):
        between = range(depth[edge.source] + 1, depth[edge.target])
        lanes = [Key(f"lane-{number}", at) for at in between]
        for lane in lanes:
            layers[lane.pk].append(lane)
        ways[edge] = [edge.source, *lanes, edge.target]
        for here, there in pairwise(ways[edge]):
            up[there].append(here)
            down[here].append(there)
    for sweep in range(SWEEPS):
        near = down if sweep % 2 else up
        place = {key: row for layer in layers for row, key in enumerate(layer)}
        for layer in reversed(layers) if sweep % 2 else layers:
            means = {key: _mean(near[key], place, place[key]) for key in layer}
            layer.sort(key=lambda key: (means[key], key))
            place |= {key: row for row, key in enumerate(layer)}
    return layers, ways


def short(text: str, letters: int = LETTERS) -> str:
    """Return a text that fits, cut in its middle: names differ at their ends."""
    if len(text) <= letters:
        return text
    head = (letters - 1) // 2
    return f"{text[:head]}…{text[-(letters - 1 - head) :]}"


def _depths(keys: Sequence[Key], up: Mapping[Key, list[Key]]) -> dict[Key, int]:
    """Return the longest path to each key; without recursion, chains may be long."""
    depth: dict[Key, int] = {}
    open_: set[Key] = set()
    for first in keys:
        waiting = [first]
        while waiting:
            key = waiting[-1]
            if key in depth:
                waiting.pop()
                continue
            missing = [one for one in up[key] if one not in depth and one not in open_]
            if missing and key not in open_:
                open_.add(key)
                waiting += missing
                continue
            depth[key] = max((depth[one] + 1 for one in up[key] if one in depth), default=0)
            open_.discard(key)
            waiting.pop()
    return depth


def _mean(keys: Sequence[Key], place: Mapping[Key, int], own: int) -> float:
    return sum(place[key] for key in keys) / len(keys) if keys else own


def _path(points: Sequence[tuple[int, int]]) -> str:
    """Return a path through the middles of left sides: curves in the gaps, straight along lanes."""
    x, y = points[0]
    path = f"M{x + WIDTH} {y}"
    for here, there in pairwise(points):
        start, bend = here[0] + WIDTH, max((there[0] - here[0] - WIDTH) // 2, ACROSS // 2)
        path += f"C{start + bend} {here[1]} {there[0] - bend} {there[1]} {there[0]} {there[1]}"
        if there != points[-1]:
            path += f"H{there[0] + WIDTH}"
    return path
