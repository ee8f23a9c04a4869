// Walk to the flag; one press of an arrow key walks on until something must be decided.
"use strict";

const EDGE = 13;
let side = 9, size = 46;
const KEYS = { ArrowUp: [0, -1, 1], ArrowRight: [1, 0, 2], ArrowDown: [0, 1, 4], ArrowLeft: [-1, 0, 8] };
// Open sides of each cell: up 1, right 2, down 4, left 8.
let cells = [], place = 0, goal = 0, moves = 0;

function begin(chance, { side: wanted = 9 }) {
  moves = 0;
  side = wanted;
  size = 414 / side;
  cells = new Array(side * side).fill(0);
  const seen = new Set([0]), stack = [0];
  while (stack.length) {
    const here = stack[stack.length - 1];
    const ways = Object.values(KEYS).filter((way) => {
      const next = step(here, way);
      return next !== null && !seen.has(next);
    });
    if (!ways.length) { stack.pop(); continue; }
    const way = chance.pick(ways), next = step(here, way);
    cells[here] |= way[2];
    cells[next] |= ((way[2] << 2) | (way[2] >> 2)) & 15;
    seen.add(next);
    stack.push(next);
  }
  place = 0;
  goal = side * side - 1;
  draw();
}

function step(from, [dx, dy]) {
  const x = (from % side) + dx, y = Math.floor(from / side) + dy;
  return x < 0 || y < 0 || x >= side || y >= side ? null : y * side + x;
}

function walk(way) {
  if (place === goal || !(cells[place] & way[2])) return;
  moves++;
  const across = way[0] ? 5 : 10;
  do {
    place = step(place, way);
  } while (place !== goal && cells[place] & way[2] && !(cells[place] & across));
  draw();
}

window.addEventListener("keydown", (event) => {
  if (!KEYS[event.key]) return;
  event.preventDefault();
  walk(KEYS[event.key]);
});

function draw() {
  empty(board());
  const svg = make("svg", { viewBox: "0 0 440 440", width: 440, height: 440 }, board());
  const middle = (cell) => [EDGE + ((cell % side) + 0.5) * size, EDGE + (Math.floor(cell / side) + 0.5) * size];
  const [gx, gy] = middle(goal), [px, py] = middle(place);
  make("rect", { x: gx - 20, y: gy - 20, width: 40, height: 40, rx: 8, fill: "#d9efe2" }, svg);
  make("path", { d: `M${gx - 8},${gy + 14} V${gy - 14} L${gx + 12},${gy - 7} L${gx - 8},${gy}`,
    fill: "#3f9b6b", stroke: "#3f9b6b", "stroke-width": 3, "stroke-linejoin": "round" }, svg);
  let walls = "";
  cells.forEach((open, cell) => {
    const x = EDGE + (cell % side) * size, y = EDGE + Math.floor(cell / side) * size;
    if (!(open & 1)) walls += `M${x},${y}h${size}`;
    if (!(open & 8)) walls += `M${x},${y}v${size}`;
    if (!(open & 2)) walls += `M${x + size},${y}v${size}`;
    if (!(open & 4)) walls += `M${x},${y + size}h${size}`;
  });
  make("path", { d: walls, stroke: "#22303c", "stroke-width": 4, "stroke-linecap": "round", fill: "none" }, svg);
  make("circle", { cx: px, cy: py, r: 13, fill: "#e4572e", stroke: "#fff", "stroke-width": 3 }, svg);
  const end = place === goal;
  show({ Moves: moves }, end ? "You have reached the flag" : "Arrow keys walk to the next junction or wall", end ? "won" : "");
}

publish({ name: "maze", version: "1", begin, state: () => ({ side, cells, place, goal, moves }) });
