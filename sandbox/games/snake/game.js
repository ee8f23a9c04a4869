// Eat, grow, and hit neither a wall nor yourself.
"use strict";

const CELLS = 15, SIZE = 28, EDGE = 10, BEAT_MS = 200;
const WAYS = { ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowDown: [0, 1], ArrowLeft: [-1, 0] };
let snake = [], way = [1, 0], turns = [], food = null, over = false, chance = null, timer = 0;

const same = (a, b) => a[0] === b[0] && a[1] === b[1];
const taken = (cell) => snake.some((part) => same(part, cell));

function feed() {
  const free = [];
  for (let y = 0; y < CELLS; y++) {
    for (let x = 0; x < CELLS; x++) if (!taken([x, y])) free.push([x, y]);
  }
  food = free.length ? chance.pick(free) : null;
}

function begin(given) {
  chance = given;
  snake = [[6, 7], [5, 7], [4, 7]];
  [way, turns, over] = [[1, 0], [], false];
  feed();
  clearInterval(timer);
  timer = setInterval(beat, BEAT_MS);
  draw();
}

function beat() {
  if (over) return;
  // A turn straight back is no turn.
  const turn = turns.shift();
  if (turn && !same(turn, [-way[0], -way[1]])) way = turn;
  const head = [snake[0][0] + way[0], snake[0][1] + way[1]];
  const eats = food && same(head, food);
  const body = eats ? snake : snake.slice(0, -1);
  over = head.some((n) => n < 0 || n >= CELLS) || body.some((part) => same(part, head));
  if (!over) snake = [head, ...body];
  if (eats && !over) feed();
  if (food === null) over = true;
  draw();
}

window.addEventListener("keydown", (event) => {
  if (!(event.key in WAYS)) return;
  event.preventDefault();
  if (turns.length < 2) turns.push(WAYS[event.key]);
});

function draw() {
  empty(board());
  const svg = make("svg", { viewBox: "0 0 440 440", width: 440, height: 440 }, board());
  for (let n = 0; n < CELLS * CELLS; n += 2) {
    const [x, y] = [n % CELLS, Math.floor(n / CELLS)];
    make("rect", { x: EDGE + x * SIZE, y: EDGE + y * SIZE, width: SIZE, height: SIZE, fill: "#f2efe7" }, svg);
  }
  make("rect", {
    x: EDGE - 2, y: EDGE - 2, width: CELLS * SIZE + 4, height: CELLS * SIZE + 4, rx: 6,
    fill: "none", stroke: "#22303c", "stroke-width": 3,
  }, svg);
  const middle = ([x, y]) => [EDGE + (x + 0.5) * SIZE, EDGE + (y + 0.5) * SIZE];
  if (food) {
    const [cx, cy] = middle(food);
    make("circle", { cx, cy, r: 10, fill: "#e4572e" }, svg);
    make("rect", { x: cx - 1, y: cy - 15, width: 3, height: 7, rx: 1, fill: "#3f9b6b" }, svg);
  }
  make("polyline", {
    points: snake.map((part) => middle(part).join(",")).join(" "), fill: "none",
    stroke: over ? "#6b7782" : "#1f7a8c", "stroke-width": 20, "stroke-linecap": "round", "stroke-linejoin": "round",
  }, svg);
  const [hx, hy] = middle(snake[0]);
  for (const side of [-1, 1]) {
    const [ex, ey] = [hx + way[0] * 4 - way[1] * 5 * side, hy + way[1] * 4 + way[0] * 5 * side];
    make("circle", { cx: ex, cy: ey, r: 3.2, fill: "#ffffff" }, svg);
  }
  const length = snake.length;
  show({ Eaten: length - 3 }, over ? "The snake has hit something" : "Steer with the arrow keys", over ? "lost" : "");
}

publish({
  name: "snake", version: "1", begin,
  state: () => ({ cells: CELLS, snake, way, turns, food, over }),
});
