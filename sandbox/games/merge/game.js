// Drop numbers into columns; equal neighbours become one number, doubled.
"use strict";

const COLUMNS = 5, ROWS = 6, SIZE = 70, LEFT = 45, TOP = 74, DROPS = 60;
const COLOURS = { 2: "#8fb8c4", 4: "#5f9fb0", 8: "#1f7a8c", 16: "#3f9b6b", 32: "#7fae3a", 64: "#eeb033",
  128: "#e4852e", 256: "#e4572e", 512: "#d6538a", 1024: "#7d5ba6", 2048: "#3d6fb6" };
// columns[c] lists the numbers of a column from the ground up.
let columns = [], next = [], score = 0, drops = 0, chance = null;

const over = () => drops >= DROPS || columns.every((column) => column.length >= ROWS);
const fresh = () => 2 ** (1 + chance.int(4));

function begin(random) {
  chance = random;
  columns = Array.from({ length: COLUMNS }, () => []);
  next = [fresh(), fresh()];
  score = drops = 0;
  draw();
}

// The number that has come to rest takes in its equals to the left, right and below, again and again.
function merge(c, r) {
  for (;;) {
    const value = columns[c][r];
    const sides = [c - 1, c + 1].filter((n) => columns[n] && columns[n][r] === value);
    const below = r > 0 && columns[c][r - 1] === value;
    const times = sides.length + (below ? 1 : 0);
    if (!times) return;
    for (const n of sides) columns[n].splice(r, 1);
    columns[c][r] = value * 2 ** times;
    score += columns[c][r];
    if (below) columns[c].splice(--r, 1);
  }
}

function drop(c) {
  if (over() || columns[c].length >= ROWS) return;
  columns[c].push(next.shift());
  next.push(fresh());
  drops++;
  merge(c, columns[c].length - 1);
  draw();
}

function tile(parent, value, x, y, size) {
  const colour = COLOURS[value] || "#22303c", text = String(value);
  make("rect", { x: x + 3, y: y + 3, width: size - 6, height: size - 6, rx: 10, fill: colour }, parent);
  const letters = Math.round(size * (text.length > 3 ? 0.3 : 0.38));
  make("text", { x: x + size / 2, y: y + size / 2 + letters * 0.36, "text-anchor": "middle", fill: "#fff",
    "font-size": letters, "font-weight": 700, text }, parent);
}

function draw() {
  empty(board());
  for (let c = 0; c < COLUMNS; c++) {
    const button = make("button", { at: `column-${c}`, box: [LEFT + c * SIZE, TOP, SIZE, ROWS * SIZE],
      "aria-label": `column ${c + 1}: ${columns[c].join(" ") || "empty"}` }, board());
    button.onclick = () => drop(c);
  }
  const svg = make("svg", { viewBox: "0 0 440 500", width: 440, height: 500, style: { pointerEvents: "none" } }, board());
  make("text", { x: 112, y: 44, "text-anchor": "end", fill: "#6b7782", "font-size": 15, text: "Next" }, svg);
  tile(svg, next[0], 124, 8, 60);
  make("text", { x: 268, y: 44, "text-anchor": "end", fill: "#6b7782", "font-size": 15, text: "then" }, svg);
  tile(svg, next[1], 278, 16, 44);
  for (let c = 0; c < COLUMNS; c++) {
    make("rect", { x: LEFT + c * SIZE + 2, y: TOP, width: SIZE - 4, height: ROWS * SIZE, rx: 12, fill: "#f1eee6" }, svg);
    columns[c].forEach((value, r) => tile(svg, value, LEFT + c * SIZE, TOP + (ROWS - 1 - r) * SIZE, SIZE));
  }
  const full = drops < DROPS && over();
  const hint = full ? "Every column is full" : over() ? "All numbers dropped" : "Click the column to drop the next number into";
  show({ Score: score, Drops: DROPS - drops }, hint, full ? "lost" : over() ? "won" : "");
}

publish({
  name: "merge", version: "1", begin,
  state: () => ({ columns, rows: ROWS, next, score, drops, most: DROPS }),
});
