// Falling blocks of four cells; a full row disappears.
"use strict";

const COLUMNS = 10, ROWS = 16, SIZE = 26, LEFT = 24, TOP = 12, FALL_MS = 500;
// Each block's cells [x, y] in its own square of `size` cells.
const BLOCKS = [
  { name: "I", size: 4, colour: "#1f7a8c", cells: [[0, 1], [1, 1], [2, 1], [3, 1]] },
  { name: "J", size: 3, colour: "#3d6fb6", cells: [[0, 0], [0, 1], [1, 1], [2, 1]] },
  { name: "L", size: 3, colour: "#c08a4e", cells: [[2, 0], [0, 1], [1, 1], [2, 1]] },
  { name: "O", size: 2, colour: "#eeb033", cells: [[0, 0], [1, 0], [0, 1], [1, 1]] },
  { name: "S", size: 3, colour: "#3f9b6b", cells: [[1, 0], [2, 0], [0, 1], [1, 1]] },
  { name: "T", size: 3, colour: "#7d5ba6", cells: [[1, 0], [0, 1], [1, 1], [2, 1]] },
  { name: "Z", size: 3, colour: "#e4572e", cells: [[0, 0], [1, 0], [1, 1], [2, 1]] },
];
let grid = [], block = null, bag = [], lines = 0, placed = 0, over = false, chance = null, timer = 0;

const turned = (cells, size) => cells.map(([x, y]) => [size - 1 - y, x]);
const cellsOf = ({ kind, turns, x, y }) => {
  let { cells, size } = BLOCKS[kind];
  for (let n = 0; n < turns; n++) cells = turned(cells, size);
  return cells.map(([dx, dy]) => [x + dx, y + dy]);
};
const fits = (moved) => cellsOf(moved).every(
  ([x, y]) => x >= 0 && x < COLUMNS && y < ROWS && (y < 0 || grid[y][x] === 0));

function begin(given) {
  chance = given;
  grid = Array.from({ length: ROWS }, () => new Array(COLUMNS).fill(0));
  [bag, lines, placed, over] = [[], 0, 0, false];
  next();
  clearInterval(timer);
  timer = setInterval(() => lower(), FALL_MS);
  draw();
}

function next() {
  while (bag.length < 2) bag.push(...chance.shuffle([0, 1, 2, 3, 4, 5, 6]));
  const kind = bag.shift();
  block = { kind, turns: 0, x: Math.floor((COLUMNS - BLOCKS[kind].size) / 2), y: 0 };
  if (!fits(block)) over = true;
}

function settle() {
  for (const [x, y] of cellsOf(block)) grid[y][x] = block.kind + 1;
  const kept = grid.filter((row) => row.includes(0));
  lines += ROWS - kept.length;
  placed++;
  grid = [...Array.from({ length: ROWS - kept.length }, () => new Array(COLUMNS).fill(0)), ...kept];
  next();
}

function move(change) {
  const moved = { ...block, ...change };
  if (over || !fits(moved)) return false;
  block = moved;
  draw();
  return true;
}

function lower() {
  if (over || move({ y: block.y + 1 })) return;
  settle();
  draw();
}

function drop() {
  const before = placed;
  while (!over && placed === before) lower();
}

window.addEventListener("keydown", (event) => {
  const keys = {
    ArrowLeft: () => move({ x: block.x - 1 }),
    ArrowRight: () => move({ x: block.x + 1 }),
    ArrowUp: () => move({ turns: (block.turns + 1) % 4 }),
    ArrowDown: lower,
    " ": drop,
  };
  if (!(event.key in keys)) return;
  event.preventDefault();
  keys[event.key]();
});

function paint(svg, x, y, colour, size = SIZE) {
  make("rect", { x: x + 1, y: y + 1, width: size - 2, height: size - 2, rx: 4, fill: colour }, svg);
  make("rect", { x: x + 4, y: y + 4, width: size - 8, height: 4, rx: 2, fill: "#ffffff", opacity: 0.35 }, svg);
}

function draw() {
  empty(board());
  const svg = make("svg", { viewBox: "0 0 440 440", width: 440, height: 440 }, board());
  make("rect", {
    x: LEFT - 4, y: TOP - 4, width: COLUMNS * SIZE + 8, height: ROWS * SIZE + 8, rx: 8,
    fill: "#f2efe7", stroke: "#22303c", "stroke-width": 3,
  }, svg);
  for (let y = 0; y < ROWS; y++) {
    for (let x = 0; x < COLUMNS; x++) {
      const kind = grid[y][x];
      if (kind) paint(svg, LEFT + x * SIZE, TOP + y * SIZE, BLOCKS[kind - 1].colour);
      else make("circle", { cx: LEFT + (x + 0.5) * SIZE, cy: TOP + (y + 0.5) * SIZE, r: 1.5, fill: "#d5cfc1" }, svg);
    }
  }
  for (const [x, y] of cellsOf(block)) {
    if (y >= 0) paint(svg, LEFT + x * SIZE, TOP + y * SIZE, over ? "#6b7782" : BLOCKS[block.kind].colour);
  }
  make("text", { x: 318, y: 40, "font-size": 15, fill: "#6b7782", text: "Next" }, svg);
  const coming = BLOCKS[bag[0]];
  for (const [x, y] of coming.cells) paint(svg, 318 + x * 24, 54 + y * 24, coming.colour, 24);
  show({ Rows: lines, Blocks: placed }, over ? "No room for another block" : "Fill whole rows", over ? "lost" : "");
}

publish({
  name: "blocks-drop", version: "1", begin,
  state: () => ({
    columns: COLUMNS, rows: ROWS, grid, block, next: bag[0], lines, placed, over,
    blocks: BLOCKS.map(({ size, cells }) => ({ size, cells })),
  }),
});
