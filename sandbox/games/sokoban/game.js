// Push the boxes onto the marks. A level is made by pulling boxes away from the marks, so it can be won.
"use strict";

const CELLS = 8, SIZE = 52, EDGE = 12, BOXES = 3;
const WAYS = { ArrowUp: -CELLS, ArrowRight: 1, ArrowDown: CELLS, ArrowLeft: -1 };
let walls = [], marks = [], boxes = [], player = 0, past = [], moves = 0;

// Cells are numbers; the rim is wall, so that no step leaves the board.
const rim = (cell) => cell % CELLS === 0 || cell % CELLS === CELLS - 1 || cell < CELLS || cell >= CELLS * (CELLS - 1);
const open = (cell) => !walls[cell] && !boxes.includes(cell);

function reach(start) {
  const seen = new Set([start]), todo = [start];
  while (todo.length) {
    const cell = todo.pop();
    for (const step of Object.values(WAYS)) {
      if (seen.has(cell + step) || !open(cell + step)) continue;
      seen.add(cell + step);
      todo.push(cell + step);
    }
  }
  return seen;
}

function attempt(chance) {
  walls = Array.from({ length: CELLS * CELLS }, (_, cell) => rim(cell) || chance.next() < 0.16);
  boxes = [];
  const floor = walls.flatMap((wall, cell) => (wall ? [] : [cell]));
  // Floor that can't be walked to would be a hole in the picture.
  const whole = reach(floor[0]);
  for (const cell of floor) if (!whole.has(cell)) walls[cell] = true;
  const free = [...whole].sort((a, b) => a - b);
  if (free.length < 20) return false;
  marks = chance.shuffle(free).slice(0, BOXES).sort((a, b) => a - b);
  boxes = marks.slice();
  player = chance.pick(free.filter((cell) => !marks.includes(cell)));
  for (let pulls = 0; pulls < 60; pulls++) {
    const near = reach(player), options = [];
    boxes.forEach((box, index) => {
      for (const step of Object.values(WAYS)) {
        if (near.has(box + step) && open(box + 2 * step)) options.push([index, step]);
      }
    });
    if (!options.length) return false;
    const [index, step] = chance.pick(options);
    player = boxes[index] + 2 * step;
    boxes[index] += step;
  }
  return boxes.every((box) => !marks.includes(box));
}

function begin(chance) {
  while (!attempt(chance));
  [past, moves] = [[], 0];
  draw();
}

const solved = () => boxes.every((box) => marks.includes(box));

window.addEventListener("keydown", (event) => {
  if (event.key === "z" && past.length && !solved()) {
    [player, boxes] = past.pop();
    moves++;
    draw();
  }
  const step = WAYS[event.key];
  if (!step || solved()) return;
  event.preventDefault();
  const next = player + step, box = boxes.indexOf(next);
  if (walls[next] || (box >= 0 && !open(next + step))) return;
  past.push([player, boxes.slice()]);
  if (box >= 0) boxes = boxes.map((cell) => (cell === next ? next + step : cell));
  player = next;
  moves++;
  draw();
});

function draw() {
  empty(board());
  const svg = make("svg", { viewBox: "0 0 440 440", width: 440, height: 440 }, board());
  const at = (cell) => [EDGE + (cell % CELLS) * SIZE, EDGE + Math.floor(cell / CELLS) * SIZE];
  walls.forEach((wall, cell) => {
    const [x, y] = at(cell);
    const fill = wall ? "#5b6b78" : "#f2efe7";
    make("rect", { x, y, width: SIZE, height: SIZE, fill, stroke: wall ? "#4a5863" : "#e2ddd2" }, svg);
  });
  for (const cell of marks) {
    const [x, y] = at(cell);
    make("circle", { cx: x + 26, cy: y + 26, r: 12, fill: "none", stroke: "#e4572e", "stroke-width": 4 }, svg);
  }
  for (const cell of boxes) {
    const [x, y] = at(cell), home = marks.includes(cell);
    make("rect", {
      x: x + 5, y: y + 5, width: 42, height: 42, rx: 5, fill: home ? "#3f9b6b" : "#c08a4e",
      stroke: home ? "#2c7550" : "#8f6434", "stroke-width": 3,
    }, svg);
    make("path", {
      d: `M${x + 11},${y + 11} l30,30 m0,-30 l-30,30`, stroke: home ? "#2c7550" : "#8f6434", "stroke-width": 3,
    }, svg);
  }
  const [px, py] = at(player);
  make("circle", { cx: px + 26, cy: py + 19, r: 9, fill: "#3d6fb6" }, svg);
  make("path", { d: `M${px + 11},${py + 46} q15,-32 30,0 z`, fill: "#3d6fb6" }, svg);
  const home = boxes.filter((cell) => marks.includes(cell)).length;
  show({ Home: `${home}/${BOXES}`, Moves: moves }, solved() ? "All boxes are home" : "Push the boxes onto the marks", solved() ? "won" : "");
}

publish({
  name: "sokoban", version: "1", begin,
  state: () => ({ cells: CELLS, walls, marks, boxes, player, moves, past: past.length }),
});
