// Eight by eight candies of four colours, and fifty swaps.
"use strict";

const SIDE = 8, SIZE = 53, EDGE = 8, SWAPS = 50, KINDS = 4;
const LOOKS = [
  ["red", "#e4572e", "M26,12a14,14 0 1,0 .1,0Z"], ["yellow", "#eeb033", "M26,10L43,40H9Z"],
  ["green", "#3f9b6b", "M12,13H40V39H12Z"], ["blue", "#3d6fb6", "M26,8L44,26L26,44L8,26Z"],
];
let candies = [], score = 0, left = SWAPS, chosen = -1, chance = null;

const at = (x, y) => (x < SIDE && y < SIDE ? candies[y * SIDE + x] : -1);

function lines() {
  const hit = new Set();
  for (let y = 0; y < SIDE; y++) {
    for (let x = 0; x < SIDE; x++) {
      for (const [dx, dy] of [[1, 0], [0, 1]]) {
        let length = 1;
        while (at(x + length * dx, y + length * dy) === at(x, y)) length++;
        for (let n = 0; length >= 3 && n < length; n++) hit.add((y + n * dy) * SIDE + x + n * dx);
      }
    }
  }
  return hit;
}

function exchange(a, b) {
  [candies[a], candies[b]] = [candies[b], candies[a]];
}

const beside = (a, b) => Math.abs(a % SIDE - b % SIDE) + Math.abs(Math.floor(a / SIDE) - Math.floor(b / SIDE)) === 1;

function works(a, b) {
  exchange(a, b);
  const found = lines().size > 0;
  exchange(a, b);
  return found;
}

const anyMove = () => candies.some((_, cell) => [1, SIDE].some(
  (step) => cell + step < SIDE * SIDE && beside(cell, cell + step) && works(cell, cell + step)));

function fresh() {
  do candies = Array.from({ length: SIDE * SIDE }, () => chance.int(KINDS)); while (lines().size || !anyMove());
}

function begin(given) {
  chance = given;
  [score, left, chosen] = [0, SWAPS, -1];
  fresh();
  draw();
}

function settle() {
  for (let hit = lines(); hit.size; hit = lines()) {
    score += hit.size;
    for (let x = 0; x < SIDE; x++) {
      const kept = [];
      for (let y = SIDE - 1; y >= 0; y--) if (!hit.has(y * SIDE + x)) kept.push(at(x, y));
      for (let y = SIDE - 1; y >= 0; y--) candies[y * SIDE + x] = kept.length ? kept.shift() : chance.int(KINDS);
    }
  }
  if (!anyMove()) fresh();
}

function press(cell) {
  if (left === 0) return;
  if (chosen < 0 || !beside(chosen, cell)) chosen = chosen === cell ? -1 : cell;
  else {
    if (works(chosen, cell)) {
      exchange(chosen, cell);
      left--;
      settle();
    }
    chosen = -1;
  }
  draw();
}

function draw() {
  empty(board());
  candies.forEach((kind, cell) => {
    const [x, y] = [cell % SIDE, Math.floor(cell / SIDE)], [name, colour, path] = LOOKS[kind];
    const button = make("button", {
      at: `candy-${cell}`, box: [EDGE + x * SIZE, EDGE + y * SIZE, SIZE, SIZE],
      "aria-label": `${name} candy, row ${y + 1}, column ${x + 1}`,
    }, board());
    button.onclick = () => press(cell);
    const svg = make("svg", { viewBox: "0 0 52 52", width: SIZE, height: SIZE }, button);
    const mark = cell === chosen ? { stroke: "#22303c", "stroke-width": 3 } : {};
    make("rect", { x: 2, y: 2, width: 48, height: 48, rx: 9, fill: "#f4f1ea", ...mark }, svg);
    make("path", { d: path, fill: colour, stroke: colour, "stroke-width": 4, "stroke-linejoin": "round" }, svg);
  });
  show({ Points: score, Swaps: left }, left ? "Make lines of three" : "No swap is left", left ? "" : "won");
}

publish({
  name: "candy-crush", version: "1", begin,
  state: () => ({ side: SIDE, candies, score, left, chosen }),
});
