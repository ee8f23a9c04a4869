"""Pages about shapes, letters and digits that are drawn: which one, how many, of what kind."""

from __future__ import annotations

import re

from sandbox.families.miniwob.sight import Decision, Script, Sight
from sandbox.families.protocol import NoWay

# [size, colour, kind, text, index] of everything that is drawn on the grid.
_DRAWN = """all('#area_svg > *').map((e, i) => {
  const kinds = {circle: 'circle', rect: 'rectangle', polygon: 'triangle'};
  const text = kinds[e.tagName] || e.textContent;
  const kind = kinds[e.tagName] ? 'shape' : /[0-9]/.test(text) ? 'digit' : 'letter';
  const span = e.tagName === 'text' ? parseFloat(e.getAttribute('font-size')) : e.getBBox().width;
  return [span > 15 ? 'large' : 'small', e.getAttribute('fill'), kind, text, i];
})"""


def _matching(sight: Sight, asked: str) -> list[int]:
    """Return the indices of what "large red letter" or "small item" describes."""
    *words, thing = asked.split(" ")
    found = []
    for size, colour, kind, text, index in sight.js(_DRAWN):
        fits = all(word in (size, colour) for word in words)
        if fits and (thing == "item" or thing in (kind, text)):
            found.append(int(index))
    return found


def _click_shape(sight: Sight) -> Decision:
    asked = sight.said.removeprefix("Click on a ")
    for index in _matching(sight, asked):
        if sight.js(f"hit(all('#area_svg > *')[{index}])"):
            return sight.click(f"This is a {asked}, I click it.", f"all('#area_svg > *')[{index}]")
    raise NoWay(f"no {asked} can be clicked")


def _count_shape(sight: Sight) -> Decision:
    match = re.fullmatch(r"How many (.*)s are there\?", sight.said)
    if match is None:
        raise NoWay(f"nothing to count in {sight.said!r}")
    count = len(_matching(sight, match.group(1)))
    return sight.click(f"I count {count}.", f"named('#count-buttons button', '{count}')")


def _identify(sight: Sight) -> Decision:
    kind, text = sight.js(_DRAWN)[0][2:4]
    wanted = text if kind == "shape" else kind
    return sight.click(f"The figure is a {wanted}.", f"one('button[data-type={wanted}]')")


# The outline's distance from the middle goes up and down once per side: its strongest wave counts them.
_SIDES = """(() => {
  const c = one('#c'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
  const far = [], N = 720;
  for (let k = 0; k < N; k++) {
    const a = 2 * Math.PI * k / N;
    let sum = 0, weight = 0;
    for (let r = 5; r < 48; r += .25) {
      const x = Math.round(75 + r * Math.cos(a) - .5), y = Math.round(50 + r * Math.sin(a) - .5);
      const w = d[4 * (y * c.width + x) + 3] || 0;
      sum += w * r; weight += w;
    }
    far.push(weight ? sum / weight : 0);
  }
  const strength = (n) => {
    let re = 0, im = 0;
    far.forEach((r, k) => { re += r * Math.cos(2 * Math.PI * n * k / N); im += r * Math.sin(2 * Math.PI * n * k / N); });
    return Math.hypot(re, im);
  };
  return [3, 4, 5, 6, 7].reduce((best, n) => strength(n) > strength(best) ? n : best);
})()"""


def _count_sides(sight: Sight) -> Decision:
    sides = int(sight.js(_SIDES))
    return sight.click(f"The shape has {sides} sides.", f"named('#form button', '{sides}')")


def _ascending(sight: Sight) -> Decision:
    if sight.js("one('svg text') !== null"):
        return sight.click(
            "I click 1, and keep in mind where the others are.", "named('svg text', '1')"
        )
    number = sight.js("one('svg rect').dataset.index")
    return sight.click(f"{number} was here.", "one('svg rect')")


def _grid(sight: Sight) -> Decision:
    match = re.search(r"\((-?\d),(-?\d)\)", sight.said)
    if match is None:
        raise NoWay(f"no coordinate in {sight.said!r}")
    return sight.click(
        f"x is {match.group(1)}, y is {match.group(2)}.",
        f"document.getElementById('{match.group()}')",
    )


SCRIPTS: dict[str, Script] = {
    "click-shape": _click_shape,
    "count-shape": _count_shape,
    "count-sides": _count_sides,
    "identify-shape": _identify,
    "ascending-numbers": _ascending,
    "grid-coordinate": _grid,
}
