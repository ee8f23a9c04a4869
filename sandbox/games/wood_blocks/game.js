// Blocks on a square board: full rows and columns vanish.
"use strict";

const SIDE = 8, SIZE = 52;
const cells = Array.from({ length: SIDE * SIDE }, (_, n) => [n % SIDE, Math.floor(n / SIDE)]);
const count = [...Array(SIDE).keys()];

function paint(parent, x, y, scale, fill) {
  const side = (SIZE - 4) * scale;
  const free = fill === "#f1eee6";
  make("rect", { x: x - side / 2, y: y - side / 2, width: side, height: side, rx: 7 * scale, fill }, parent);
  if (!free) make("rect", { x: x - side * 0.32, y: y - side * 0.32, width: side * 0.64, height: side * 0.64,
    rx: 5 * scale, fill: "#fff", opacity: 0.14 }, parent);
}

const row = (n) => [...Array(n).keys()].map((x) => [x, 0]);
const column = (n) => [...Array(n).keys()].map((y) => [0, y]);
placing({
  name: "wood-blocks", version: "1", cells, paint, most: 36, origin: [12, 12],
  middle: (x, y) => [(x + 0.5) * SIZE, (y + 0.5) * SIZE],
  lines: [...count.map((y) => count.map((x) => y * SIDE + x)), ...count.map((x) => count.map((y) => y * SIDE + x))],
  pieces: [
    row(1), row(2), column(2), row(3), column(3), row(4), column(4),
    [[0, 0], [1, 0], [0, 1], [1, 1]],
    [[0, 0], [0, 1], [1, 1]], [[0, 0], [1, 0], [0, 1]], [[0, 0], [1, 0], [1, 1]], [[0, 0], [0, 1], [-1, 1]],
    [[0, 0], [0, 1], [0, 2], [1, 2]], [[0, 0], [0, 1], [0, 2], [-1, 2]], [[0, 0], [1, 0], [2, 0], [1, 1]],
    [[0, 0], [1, 0], [1, 1], [2, 1]], [[0, 0], [1, 0], [0, 1], [-1, 1]],
    [[0, 0], [1, 0], [2, 0], [0, 1], [0, 2]],
  ],
  hint: "Drag the pieces onto the board",
});
