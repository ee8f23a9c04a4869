// Pieces on a board of hexagons: full lines in any of three directions vanish. Cells are [q, r].
"use strict";

const RADIUS = 4, WIDE = 47, HIGH = 27;
const cells = [];
for (let r = -RADIUS; r <= RADIUS; r++) {
  for (let q = -RADIUS; q <= RADIUS; q++) if (Math.abs(q + r) <= RADIUS) cells.push([q, r]);
}

function paint(parent, x, y, scale, fill) {
  const corner = (n) => {
    const turn = (Math.PI / 3) * n + Math.PI / 6;
    return `${x + 25 * scale * Math.cos(turn)},${y + 25 * scale * Math.sin(turn)}`;
  };
  make("polygon", { points: [0, 1, 2, 3, 4, 5].map(corner).join(" "), fill, stroke: fill,
    "stroke-width": 2 * scale, "stroke-linejoin": "round" }, parent);
}

const span = [...Array(2 * RADIUS + 1).keys()].map((n) => n - RADIUS);
const where = (test) => cells.map((_, n) => n).filter((n) => test(...cells[n]));
placing({
  name: "hex", version: "1", cells, paint, most: 36, origin: [220, 220],
  middle: (q, r) => [WIDE * (q + r / 2), HIGH * 1.5 * r],
  lines: span.flatMap((n) => [where((q) => q === n), where((q, r) => r === n), where((q, r) => q + r === n)]),
  pieces: [
    [[0, 0]], [[0, 0], [1, 0], [2, 0]], [[0, 0], [0, 1], [0, 2]], [[0, 0], [-1, 1], [-2, 2]],
    [[0, 0], [1, 0], [2, 0], [3, 0]], [[0, 0], [0, 1], [0, 2], [0, 3]], [[0, 0], [-1, 1], [-2, 2], [-3, 3]],
    [[0, 0], [1, 0], [0, 1], [1, 1]], [[0, 0], [1, 0], [-1, 1], [0, 1]], [[0, 0], [0, 1], [-1, 1], [-1, 2]],
    [[0, 0], [1, 0], [1, 1], [0, 2]], [[0, 0], [1, 0], [2, 0], [0, 1]], [[0, 0], [0, 1], [1, 1], [2, 0]],
  ],
  hint: "Drag the pieces onto the board",
});
