"""Pages on which something is taken somewhere with the button held."""

from __future__ import annotations

import re
from typing import Any

from sandbox.families.miniwob.sight import Decision, Place, Script, Sight
from sandbox.families.protocol import NoWay

SUBMIT = "named('button', 'Submit')"
WAYS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}


def _middle(sight: Sight, target: str) -> Place:
    x, y = sight.js(
        f"(r => [r.left + r.width / 2, r.top + r.height / 2])({target}.getBoundingClientRect())"
    )
    return float(x), float(y)


def _box(sight: Sight) -> Decision:
    if sight.js("smallBoxContained()"):
        return sight.click("The small box is inside, I submit.", SUBMIT)
    start = _middle(sight, "one('#draggableSmall')")
    if not sight.js("holds(one('#draggableSmall'), document.elementFromPoint"
                    f"({start[0]}, {start[1]}))"):  # fmt: skip
        # The large box lies over it: away with that first.
        x, y = _middle(sight, "one('#draggableLarge')")
        away = 40 if x < 80 else -40
        return sight.drag("The large box covers the small one, I move it.", [(x, y), (x + away, y)])
    return sight.drag("I take the small box into the large one.",
                      [start, _middle(sight, "one('#draggableLarge')")])  # fmt: skip


def _one_way(sight: Sight) -> Decision:
    if sight.steps:
        return sight.click("It has moved, I submit.", SUBMIT)
    match = re.search(r"(left|right|up|down)", sight.said)
    if match is None:
        raise NoWay(f"no direction in {sight.said!r}")
    dx, dy = WAYS[match.group(1)]
    x, y = _middle(sight, "one('svg').firstElementChild")
    return sight.drag(f"I drag it {match.group(1)}.", [(x, y), (x + 30 * dx, y + 30 * dy)])


def _sort(sight: Sight, order: str, source: int, target: int, why: str) -> Decision:
    """Drag item `source` of a sortable list to the place of item `target`."""
    start, end = (_middle(sight, f"all('{order}')[{index}]") for index in (source, target))
    # Past the middle of the one that has to give way.
    past = [(0 if a == b else 4 if a < b else -4) for a, b in zip(start, end, strict=True)]
    return sight.drag(why, [start, end, (end[0] + past[0], end[1] + past[1])])


def _item_index(sight: Sight) -> tuple[int, str, int]:
    names = sight.js("all('#sortable li').map(words)")
    for index, name in enumerate(names):
        if sight.said.startswith(f"Drag {name} "):
            return index, sight.said.removeprefix(f"Drag {name} ").rstrip("."), len(names)
    raise NoWay(f"nobody in the list is in {sight.said!r}")


def _items(sight: Sight) -> Decision:
    index, where, count = _item_index(sight)
    numbered = re.search(r"to the (\d)", where)
    if numbered:
        target = int(numbered.group(1)) - 1
    else:
        target = {
            "to the top": 0, "to the bottom": count - 1,
            "up by one position": index - 1, "down by one position": index + 1,
        }[where]  # fmt: skip
    return _sort(sight, "#sortable li", index, target, f"I drag it {where}.")


def _items_grid(sight: Sight) -> Decision:
    index, where, _ = _item_index(sight)
    places = ("top left", "top center", "top right", "center left", "center", "center right",
              "bottom left", "bottom center", "bottom right")  # fmt: skip
    steps = {"up": -3, "down": 3, "left": -1, "right": 1}
    if where.startswith("to the "):
        target = places.index(where.removeprefix("to the "))
    else:
        target = index + steps[where.split(" ")[0]]
    return _sort(sight, "#sortable li", index, target, f"I drag it {where}.")


def _numbers(sight: Sight) -> Decision:
    numbers = [int(text) for text in sight.js("all('#sortable li').map(words)")]
    for place, number in enumerate(numbers):
        least = min(numbers[place:])
        if number != least:
            return _sort(sight, "#sortable li", numbers.index(least, place), place,
                         f"{least} belongs to place {place + 1}.")  # fmt: skip
    return sight.click("They are in order, I submit.", SUBMIT)


_DRAWN = """all('#area_svg > *:not(#shape-container)').map(e => ({
  kind: {circle: 'circles', rect: 'rectangles', polygon: 'triangles'}[e.tagName],
  colour: e.getAttribute('fill'), at: shapes.gridCoords(e),
  mid: (r => [r.left + r.width / 2, r.top + r.height / 2])(e.getBoundingClientRect()),
}))"""
_BOXES = """all('#area_svg > #shape-container').map(e => (r => [r.left, r.top, r.width, r.height])
  (e.getBoundingClientRect()))"""


def _into_boxes(sight: Sight) -> Decision:
    """Bring every shape that belongs into a box into it, side by side, each at a place of its own."""
    match = re.search(r"Drag all (\w+)", sight.said)
    asked = match.group(1) if match else ""
    boxes: Any = sight.js(_BOXES)
    for index, shape in enumerate(sight.js(_DRAWN)):
        wanted = asked in (shape["kind"], shape["colour"])
        if not wanted and len(boxes) == 1:
            continue
        left, top, width, height = boxes[0 if wanted else 1]
        x, y = shape["mid"]
        if left < x < left + width and top < y < top + height:
            continue
        goal = (left + 16 + index * (width - 28) / 5, top + height / 2 + (index % 2 - 0.5) * 14)
        side = "box" if len(boxes) == 1 else "left box" if wanted else "right box"
        return sight.drag(f"This one belongs into the {side}.", [(x, y), goal])
    return sight.click("All are where they belong, I submit.", SUBMIT)


def _resize(sight: Sight) -> Decision:
    if sight.steps:
        return sight.click("The size has changed, I submit.", SUBMIT)
    step = 14 if "larger" in sight.said else -14
    x, y = _middle(sight, "one('.ui-resizable-se')")
    end = (x, y + step) if "height" in sight.said else (x + step, y)
    return sight.drag("I drag the corner.", [(x, y), end])


def _highlight(sight: Sight) -> Decision:
    if sight.js("getSelection().toString().trim() !== ''"):
        return sight.click("The text is highlighted, I submit.", SUBMIT)
    numbered = re.search(r"(\d)(?:st|nd|rd) paragraph", sight.said)
    target = (
        f"all('#randomText p')[{int(numbered.group(1)) - 1}]" if numbered else "one('#randomText')"
    )
    return sight.drag(
        "I drag over the text from its beginning to its end.", text_ends(sight, target)
    )


def text_ends(sight: Sight, target: str, first: int = 0, last: int = -1) -> list[Place]:
    """Return where the text of an element begins and ends, or its characters `first` to `last`."""
    found = sight.js(
        f"""((e, first, last) => {{
          let node = document.createTreeWalker(e, NodeFilter.SHOW_TEXT).nextNode();
          const size = node.data.trimEnd().length;
          const range = document.createRange();
          range.setStart(node, first); range.setEnd(node, last < 0 ? size : last);
          const rects = Array.from(range.getClientRects());
          const a = rects[0], b = rects[rects.length - 1];
          return [[a.left + .5, a.top + a.height / 2], [b.right + .5, b.top + b.height / 2]];
        }})({target}, {first}, {last})"""
    )
    return [(float(x), float(y)) for x, y in found]


SCRIPTS: dict[str, Script] = {
    "drag-box": _box,
    "drag-circle": _one_way,
    "drag-single-shape": _one_way,
    "drag-items": _items,
    "drag-items-grid": _items_grid,
    "drag-sort-numbers": _numbers,
    "drag-shapes": _into_boxes,
    "drag-shapes-2": _into_boxes,
    "resize-textarea": _resize,
    "highlight-text": _highlight,
    "highlight-text-2": _highlight,
}
