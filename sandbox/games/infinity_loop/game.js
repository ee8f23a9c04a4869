// Rotate the tiles until no end of a line is left open.
"use strict";

const COLUMNS = 4, ROWS = 4, SIZE = 100, EDGE = 20;
// A tile is four bits: up 1, right 2, down 4, left 8. A turn is clockwise.
const turn = (bits) => ((bits << 1) | (bits >> 3)) & 15;
const BITS = [[1, 0, -1], [2, 1, 0], [4, 0, 1], [8, -1, 0]];
let tiles = [], moves = 0;

function open(all) {
  let ends = 0;
  for (let y = 0; y < ROWS; y++) {
    for (let x = 0; x < COLUMNS; x++) {
      for (const [bit, dx, dy] of BITS) {
        if (!(all[y * COLUMNS + x] & bit)) continue;
        const inside = x + dx >= 0 && x + dx < COLUMNS && y + dy >= 0 && y + dy < ROWS;
        const back = ((bit << 2) | (bit >> 2)) & 15;
        if (!inside || !(all[(y + dy) * COLUMNS + x + dx] & back)) ends++;
      }
    }
  }
  return ends;
}

function begin(chance) {
  moves = 0;
  // A closed picture first: edges between neighbours; then every tile is turned by chance.
  const closed = new Array(COLUMNS * ROWS).fill(0);
  for (let y = 0; y < ROWS; y++) {
    for (let x = 0; x < COLUMNS; x++) {
      const here = y * COLUMNS + x;
      if (x + 1 < COLUMNS && chance.next() < 0.68) { closed[here] |= 2; closed[here + 1] |= 8; }
      if (y + 1 < ROWS && chance.next() < 0.68) { closed[here] |= 4; closed[here + COLUMNS] |= 1; }
    }
  }
  do {
    tiles = closed.map((bits) => {
      for (let n = chance.int(4); n > 0; n--) bits = turn(bits);
      return bits;
    });
  } while (open(tiles) < 6);
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
    const x = EDGE + (index % COLUMNS) * SIZE, y = EDGE + Math.floor(index / COLUMNS) * SIZE;
    const names = ["up", "right", "down", "left"].filter((_, n) => bits & (1 << n));
    const button = make("button", {
      at: `tile-${index}`, box: [x, y, SIZE, SIZE],
      "aria-label": `tile ${index + 1}: ${names.join(", ") || "empty"}`,
    }, board());
    button.onclick = () => press(index);
    const svg = make("svg", { viewBox: "0 0 100 100", width: SIZE, height: SIZE }, button);
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
  state: () => ({ columns: COLUMNS, rows: ROWS, tiles, moves }),
});
