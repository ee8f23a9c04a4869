// Rotate the tiles until no end of a line is left open.
"use strict";

const EDGE = 20;
let columns = 4, rows = 4, size = 100;
// A tile is four bits: up 1, right 2, down 4, left 8. A turn is clockwise.
const turn = (bits) => ((bits << 1) | (bits >> 3)) & 15;
const BITS = [[1, 0, -1], [2, 1, 0], [4, 0, 1], [8, -1, 0]];
let tiles = [], moves = 0;

function open(all) {
  let ends = 0;
  for (let y = 0; y < rows; y++) {
    for (let x = 0; x < columns; x++) {
      for (const [bit, dx, dy] of BITS) {
        if (!(all[y * columns + x] & bit)) continue;
        const inside = x + dx >= 0 && x + dx < columns && y + dy >= 0 && y + dy < rows;
        const back = ((bit << 2) | (bit >> 2)) & 15;
        if (!inside || !(all[(y + dy) * columns + x + dx] & back)) ends++;
      }
    }
  }
  return ends;
}

function begin(chance, { side = 4 }) {
  moves = 0;
  columns = rows = side;
  size = 400 / side;
  // A closed picture first: edges between neighbours; then every tile is turned by chance.
  do {
    const closed = new Array(columns * rows).fill(0);
    for (let y = 0; y < rows; y++) {
      for (let x = 0; x < columns; x++) {
        const here = y * columns + x;
        if (x + 1 < columns && chance.next() < 0.68) { closed[here] |= 2; closed[here + 1] |= 8; }
        if (y + 1 < rows && chance.next() < 0.68) { closed[here] |= 4; closed[here + columns] |= 1; }
      }
    }
    tiles = closed.map((bits) => {
      for (let n = chance.int(4); n > 0; n--) bits = turn(bits);
      return bits;
    });
  } while (open(tiles) < side + 1);
  draw();
}

function press(index) {
  if (open(tiles) === 0) return;
  tiles[index] = turn(tiles[index]);
  moves++;
  draw();
}

function draw() {
  const solved = open(tiles) === 0;
  const colour = solved ? "#3f9b6b" : "#1f7a8c";
  empty(board());
  tiles.forEach((bits, index) => {
    const x = EDGE + (index % columns) * size, y = EDGE + Math.floor(index / columns) * size;
    const names = ["up", "right", "down", "left"].filter((_, n) => bits & (1 << n));
    const button = make("button", {
      at: `tile-${index}`, box: [x, y, size, size],
      "aria-label": `tile ${index + 1}: ${names.join(", ") || "empty"}`,
    }, board());
    button.onclick = () => press(index);
    const svg = make("svg", { viewBox: "0 0 100 100", width: size, height: size }, button);
    make("rect", { x: 3, y: 3, width: 94, height: 94, rx: 10, fill: "#f4f1ea" }, svg);
    picture(svg, bits, colour);
  });
  show({ Moves: moves }, solved ? "All loops are closed" : "Click a tile to turn it", solved ? "won" : "");
}

// Two ends are one curve or a straight line, one end is a stalk with a ring, the rest are spokes.
function picture(svg, bits, colour) {
  const line = { fill: "none", stroke: colour, "stroke-width": 13, "stroke-linecap": "butt" };
  const tips = [[50, 0], [100, 50], [50, 100], [0, 50]].filter((_, n) => bits & (1 << n));
  if (tips.length === 2) {
    const [a, b] = tips;
    make("path", { d: `M${a} Q50,50 ${b}`, ...line }, svg);
  } else {
    for (const tip of tips) make("path", { d: `M${tip} L50,50`, ...line }, svg);
    if (tips.length === 1) {
      make("circle", { cx: 50, cy: 50, r: 18, fill: "#f4f1ea", stroke: colour, "stroke-width": 11 }, svg);
    } else if (tips.length > 2) make("circle", { cx: 50, cy: 50, r: 11, fill: colour }, svg);
  }
}

publish({
  name: "infinity-loop", version: "1", begin,
  state: () => ({ columns, rows, tiles, moves }),
});
