"""Where the nodes of a lineage stand: in layers from left to right, with few crossings. Pure.

After Sugiyama, Tagawa and Toda (1981): layers by the longest path, then each layer in the order of
the mean place of its neighbours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from training.lineage.graph import Edge, Graph, Key, Node

WIDTH, HEIGHT = 196, 46  # of a node, in pixels
ACROSS, DOWN = 64, 14  # between nodes
MARGIN = 12
LETTERS = 26  # of a label that fit
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
    layers = layered(sorted(nodes), graph.edges)
    tallest = max(len(layer) for layer in layers)
    places: dict[Key, tuple[int, int]] = {}
    for column, layer in enumerate(layers):
        top = MARGIN + (tallest - len(layer)) * (HEIGHT + DOWN) // 2
        for row, key in enumerate(layer):
            places[key] = (MARGIN + column * (WIDTH + ACROSS), top + row * (HEIGHT + DOWN))
    curves = [
        Curve(
            _path(places[edge.source], places[edge.target]),
            f"{nodes[edge.source].label} to {nodes[edge.target].label}"
            + (f": {edge.label}" if edge.label else ""),
        )
        for edge in graph.edges
    ]
    boxes = [Box(nodes[key], *place, key == graph.focus) for key, place in places.items()]
    return Picture(
        2 * MARGIN + len(layers) * (WIDTH + ACROSS) - ACROSS,
        2 * MARGIN + tallest * (HEIGHT + DOWN) - DOWN,
        tuple(boxes),
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
    layers = [layer for layer in layers if layer]
    for sweep in range(SWEEPS):
        near = down if sweep % 2 else up
        place = {key: row for layer in layers for row, key in enumerate(layer)}
        for layer in reversed(layers) if sweep % 2 else layers:
            means = {key: _mean(near[key], place) for key in layer}
            layer.sort(key=lambda key: (means[key], key))
            place |= {key: row for row, key in enumerate(layer)}
    return layers


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


def _mean(keys: Sequence[Key], place: Mapping[Key, int]) -> float:
    return sum(place[key] for key in keys) / len(keys) if keys else float("inf")


def _path(start: tuple[int, int], end: tuple[int, int]) -> str:
    x, y = start[0] + WIDTH, start[1] + HEIGHT // 2
    to_x, to_y = end[0], end[1] + HEIGHT // 2
    bend = max((to_x - x) // 2, ACROSS // 2)
    return f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}"
