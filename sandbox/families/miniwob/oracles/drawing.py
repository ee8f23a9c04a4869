"""Pages on which a point is set or a line is drawn by eye."""

from __future__ import annotations

import math
from typing import Any

from sandbox.families.miniwob.sight import Decision, Place, Script, Sight
from sandbox.families.protocol import NoWay

SUBMIT = "named('button', 'Submit')"
Point = tuple[float, float]


def _angle(a: Point, b: Point, vertex: Point) -> float:
    """Return the angle at `vertex` between the ways to `a` and `b`, in degrees."""
    way_a, way_b = math.dist(a, vertex), math.dist(b, vertex)
    if not way_a or not way_b:
        return 360.0  # no angle at all: never the best one
    cosine = (way_a**2 + way_b**2 - math.dist(a, b) ** 2) / (2 * way_a * way_b)
    return math.degrees(math.acos(max(-1.0, min(1.0, cosine))))


def _circles(sight: Sight) -> dict[str, list[Point]]:
    """Return the top left corners of the circles' boxes by class or id, as the page computes with them."""
    found: dict[str, list[Point]] = {}
    drawn: Any = sight.js(
        "all('#svg-grid circle').map(e => [e.getAttribute('class'), e.id, e.getBBox().x, e.getBBox().y])"
    )
    for kind, name, x, y in drawn:
        for key in {kind, name}:
            found.setdefault(key, []).append((x, y))
    return found


def _best(sight: Sight, loss: Any, radius: float = 3.5) -> Place:
    """Return the whole pixel of the drawing whose point has the least loss."""
    left, top, width, height = sight.js(
        "(r => [r.left, r.top, r.width, r.height])(one('#svg-grid').getBoundingClientRect())"
    )
    places = [
        (x, y)
        for x in range(math.ceil(left) + 1, int(left + width) - 1)
        for y in range(math.ceil(top) + 1, int(top + height) - 1)
    ]
    return min(places, key=lambda p: loss((p[0] - radius, p[1] - 50 - radius)))


def _set(sight: Sight, why: str, place: Any) -> Decision:
    if sight.js("one('#blue-circle') !== null"):
        return sight.click("The point is set, I submit.", SUBMIT)
    return sight.tap(why, place())


def _bisect(sight: Sight) -> Decision:
    circles = _circles(sight)
    a, b = circles["init-black"]
    vertex = circles["init-blue"][0]

    def loss(point: Point) -> float:
        return max(_angle(a, point, vertex), _angle(b, point, vertex))

    return _set(sight, "The line through here halves the angle.", lambda: _best(sight, loss))


def _right_angle(sight: Sight) -> Decision:
    circles = _circles(sight)
    a, vertex = circles["init-black"][0], circles["init-blue"][0]
    return _set(
        sight,
        "From here the angle is a right one.",
        lambda: _best(sight, lambda p: abs(90 - _angle(a, p, vertex)), radius=3),
    )


def _midpoint(sight: Sight) -> Decision:
    a, b = _circles(sight)["black-circle"][:2]
    middle = ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
    return _set(
        sight,
        "This is half way between the points.",
        lambda: _best(sight, lambda p: math.dist(p, middle)),
    )


def _centre(sight: Sight) -> Decision:
    x, y = sight.js("(e => [+e.getAttribute('cx'), +e.getAttribute('cy')])(one('.black-circle'))")
    return _set(
        sight,
        "This is the circle's centre.",
        lambda: _best(sight, lambda p: math.dist(p, (x - 3, y - 3))),
    )


def _marked(sight: Sight) -> Place:
    x, y = sight.js(
        "(r => [r.left + r.width / 2, r.top + r.height / 2])(one('#circ').getBoundingClientRect())"
    )
    return float(x), float(y)


def _draw_circle(sight: Sight) -> Decision:
    if sight.js("one('svg path') !== null"):
        return sight.click("The circle is drawn, I submit.", SUBMIT)
    x, y = _marked(sight)
    ring = [
        (
            round(x) + 24 * math.cos(turn * math.pi / 24),
            round(y) + 24 * math.sin(turn * math.pi / 24),
        )
        for turn in range(49)
    ]
    return sight.drag("I go around the point at an even distance.", ring)


def _draw_line(sight: Sight) -> Decision:
    if sight.js("one('svg path') !== null"):
        return sight.click("The line is drawn, I submit.", SUBMIT)
    # The page takes the dot to be 4 pixels left of and above where it is drawn, and counts only where
    # the pointer was reported: the beginning of a drag always is.
    x, y = (place - 2 for place in _marked(sight))
    left, top, width, height = sight.js(
        "(r => [r.left, r.top, r.width, r.height])(one('svg').getBoundingClientRect())"
    )
    if "horizontal" in sight.said:
        away = left + 4 if x - left > width / 2 else left + width - 6
        path = [(x, y), ((x + away) / 2, y), (away, y)]
    elif "vertical" in sight.said:
        away = top + 4 if y - top > height / 2 else top + height - 6
        path = [(x, y), (x, (y + away) / 2), (x, away)]
    else:
        raise NoWay(f"no direction in {sight.said!r}")
    return sight.drag("I draw the line through the dot.", path)


SCRIPTS: dict[str, Script] = {
    "bisect-angle": _bisect,
    "right-angle": _right_angle,
    "find-midpoint": _midpoint,
    "circle-center": _centre,
    "draw-circle": _draw_circle,
    "draw-line": _draw_line,
}
