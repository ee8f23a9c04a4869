// Lead the snake over every free cell; it never crosses itself. Going back over its neck shortens it.
"use strict";

const SIDE = 6, SIZE = 68, EDGE = 16, LEAST = 22, MOST = 28;
const KEYS = { ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowDown: [0, 1], ArrowLeft: [-1, 0] };
let free = [], body = [], moves = 0;

const beside = (cell, [dx, dy]) => {
  const x = (cell % SIDE) + dx, y = Math.floor(cell / SIDE) + dy;
  return x < 0 || y < 0 || x >= SIDE || y >= SIDE ? -1 : y * SIDE + x;
};
const solved = () => body.length === free.filter(Boolean).length;

function begin(chance) {
  moves = 0;
  // A walk that does not cross itself makes the field: its cells are free, all others are stones.
  let walk = [];
  while (walk.length < LEAST) {
    walk = [chance.int(SIDE * SIDE)];
    while (walk.length < MOST) {
      const last = walk[walk.length - 1];
      const ways = Object.values(KEYS).map((way) => beside(last, way)).filter((cell) => cell >= 0 && !walk.includes(cell));
      if (!ways.length) break;
      walk.push(chance.pick(ways));
    }
  }
  free = Array.from({ length: SIDE * SIDE }, (_, cell) => walk.includes(cell));
  body = [walk[0]];
  draw();
}

function go(cell) {
  if (solved() || cell < 0 || !free[cell]) return;
  if (cell === body[body.length - 2]) body.pop();
  else if (!body.includes(cell)) body.push(cell);
  else return;
  moves++;
  draw();
}

window.addEventListener("keydown", (event) => {
  if (KEYS[event.key]) go(beside(body[body.length - 1], KEYS[event.key]));
});

function draw() {
  empty(board());
  const middle = (cell) => [EDGE + (cell % SIDE + 0.5) * SIZE, EDGE + (Math.floor(cell / SIDE) + 0.5) * SIZE];
  const svg = make("svg", { viewBox: "0 0 440 440", width: 440, height: 440 }, board());
  free.forEach((open, cell) => {
    const [x, y] = middle(cell);
    make("rect", { x: x - 31, y: y - 31, width: 62, height: 62, rx: 9, fill: !open ? "#8b949c" : body.includes(cell) ? "#d9efe2" : "#f1eee6" }, svg);
  });
  const points = body.map(middle).map(String).join(" ");
  make("polyline", { points, fill: "none", stroke: "#3f9b6b", "stroke-width": 34, "stroke-linecap": "round", "stroke-linejoin": "round" }, svg);
  const [tx, ty] = middle(body[0]), [hx, hy] = middle(body[body.length - 1]);
  make("circle", { cx: tx, cy: ty, r: 8, fill: "#bfe3cd" }, svg);
  make("circle", { cx: hx, cy: hy, r: 21, fill: "#2c7a52" }, svg);
  make("circle", { cx: hx - 7, cy: hy - 5, r: 4, fill: "#fff" }, svg);
  make("circle", { cx: hx + 7, cy: hy - 5, r: 4, fill: "#fff" }, svg);
  const left = free.filter(Boolean).length - body.length;
  show({ Left: left, Moves: moves }, left ? "Arrow keys lead the head; back over the neck undoes" : "Every cell is covered", left ? "" : "won");
}

publish({ name: "snake-path", version: "1", begin, state: () => ({ side: SIDE, free, body, moves }) });
