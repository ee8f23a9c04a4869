// Swap neighbours so that three or more equal gems stand in a line; they vanish and others fall.
"use strict";

const SIDE = 7, SIZE = 58, EDGE = 17, TURNS = 20, KINDS = 5;
const COLOURS = ["#e4572e", "#3d6fb6", "#3f9b6b", "#eeb033", "#7d5ba6"];
const NAMES = ["red square", "blue circle", "green diamond", "yellow triangle", "violet hexagon"];
const SHAPES = ["M12,12H46V46H12Z", "M29,10a19,19 0 1,0 .1,0Z", "M29,7L51,29L29,51L7,29Z", "M29,9L51,47H7Z",
  "M18,10H40L51,29L40,48H18L7,29Z"];
let gems = [], score = 0, turns = 0, chosen = -1, chance = null, over = false;

// Cells of all lines of three or more.
function lines(all) {
  const hit = new Set();
  for (let cell = 0; cell < all.length; cell++) {
    for (const step of [1, SIDE]) {
      const run = [cell];
      for (let next = cell + step; next < all.length && all[next] === all[cell]; next += step) {
        if (step === 1 && next % SIDE === 0) break;
        run.push(next);
      }
      if (run.length >= 3) run.forEach((one) => hit.add(one));
    }
  }
  return hit;
}

const swapped = (all, a, b) => all.map((gem, n) => (n === a ? all[b] : n === b ? all[a] : gem));
const beside = (a, b) => Math.abs(a - b) === SIDE
  || (Math.abs(a - b) === 1 && Math.floor(a / SIDE) === Math.floor(b / SIDE));

function swaps(all) {
  const found = [];
  for (let a = 0; a < all.length; a++) {
    for (const b of [a + 1, a + SIDE]) {
      if (b < all.length && beside(a, b) && lines(swapped(all, a, b)).size) found.push([a, b]);
    }
  }
  return found;
}

const fill = () => Array.from({ length: SIDE * SIDE }, () => chance.int(KINDS));

function begin(random) {
  chance = random;
  score = turns = 0;
  chosen = -1;
  over = false;
  do gems = fill(); while (lines(gems).size || !swaps(gems).length);
  draw();
}

// Take lines away until none is left; each fall after the first counts once more.
function settle() {
  for (let round = 1; ; round++) {
    const hit = lines(gems);
    if (!hit.size) break;
    score += hit.size * 10 * round;
    for (let x = 0; x < SIDE; x++) {
      const column = [];
      for (let y = SIDE - 1; y >= 0; y--) if (!hit.has(y * SIDE + x)) column.push(gems[y * SIDE + x]);
      for (let y = SIDE - 1; y >= 0; y--) gems[y * SIDE + x] = column.length ? column.shift() : chance.int(KINDS);
    }
  }
  while (!swaps(gems).length || lines(gems).size) gems = fill();
}

function swap(a, b) {
  chosen = -1;
  if (!lines(swapped(gems, a, b)).size) return;
  gems = swapped(gems, a, b);
  turns++;
  settle();
  over = turns >= TURNS;
}

function press(cell) {
  if (over) return;
  if (chosen >= 0 && beside(chosen, cell)) swap(chosen, cell);
  else chosen = chosen === cell ? -1 : cell;
  draw();
}

function draw() {
  empty(board());
  gems.forEach((gem, cell) => {
    const button = make("button", {
      at: `gem-${cell}`, "aria-label": `row ${Math.floor(cell / SIDE) + 1} column ${cell % SIDE + 1}: ${NAMES[gem]}`,
      box: [EDGE + (cell % SIDE) * SIZE + 1, EDGE + Math.floor(cell / SIDE) * SIZE + 1, SIZE - 2, SIZE - 2],
      style: { background: cell === chosen ? "#cfe3ea" : "#f4f1ea", border: cell === chosen ? "3px solid #22303c" : "0" },
    }, board());
    const svg = make("svg", { viewBox: "0 0 58 58", width: "100%", height: "100%" }, button);
    make("path", { d: SHAPES[gem], fill: COLOURS[gem], stroke: COLOURS[gem], "stroke-width": 4, "stroke-linejoin": "round" }, svg);
  });
  show({ Score: score, "Swaps left": TURNS - turns }, over ? "No swaps left" : "Swap two neighbours to make a line of three", over ? "won" : "");
}

const cellAt = (x, y) => {
  const column = Math.floor((x - EDGE) / SIZE), row = Math.floor((y - EDGE) / SIZE);
  return column < 0 || row < 0 || column >= SIDE || row >= SIDE ? -1 : row * SIDE + column;
};
let first = -1;
follow(board(), {
  down(x, y) {
    first = cellAt(x, y);
    return first >= 0;
  },
  // A drag to a neighbour swaps, a press chooses.
  up(x, y) {
    const last = cellAt(x, y);
    if (over || last < 0) return;
    if (last === first) return press(first);
    if (beside(first, last)) swap(first, last);
    draw();
  },
});

publish({
  name: "gem-swap", version: "1", begin,
  state: () => ({ side: SIDE, gems, score, turns, most: TURNS, chosen, over }),
});
