// Slide the blocks out of the way until the key block is at the exit on the right.
"use strict";

const SIDE = 6, SIZE = 68, EDGE = 16;
const COLOURS = ["#7fa8c9", "#9bbf9b", "#c9a97f", "#b59cc9", "#c98f8f", "#8fbfc0"];
// A block: {x, y, length, across}. The first one is the key.
let blocks = [], moves = 0, held = null;

function grid(all) {
  const cells = new Array(SIDE * SIDE).fill(-1);
  all.forEach(({ x, y, length, across }, index) => {
    for (let n = 0; n < length; n++) cells[across ? y * SIDE + x + n : (y + n) * SIDE + x] = index;
  });
  return cells;
}

// How far a block can go back and on, in cells.
function room(all, index) {
  const cells = grid(all), { x, y, length, across } = all[index];
  const free = (n) => {
    const a = across ? x + n : x, b = across ? y : y + n;
    return a >= 0 && b >= 0 && a < SIDE && b < SIDE && cells[b * SIDE + a] === -1;
  };
  let back = 0, on = 0;
  while (free(-back - 1)) back++;
  while (free(length + on)) on++;
  return [back, on];
}

const freed = (all) => all[0].x + all[0].length === SIDE;
const moved = (all, index, by) => all.map((block, n) => n !== index ? block
  : block.across ? { ...block, x: block.x + by } : { ...block, y: block.y + by });

// The fewest moves that free the key, or -1; gives up beyond 1200 positions.
function distance(start) {
  const code = (all) => all.map((b) => (b.across ? b.x : b.y)).join("");
  const seen = new Set([code(start)]);
  let front = [start];
  for (let depth = 0; front.length && seen.size < 1200; depth++) {
    const next = [];
    for (const all of front) {
      if (freed(all)) return depth;
      for (let index = 0; index < all.length; index++) {
        const [back, on] = room(all, index);
        for (let by = -back; by <= on; by++) {
          const after = by ? moved(all, index, by) : all;
          if (by && !seen.has(code(after))) { seen.add(code(after)); next.push(after); }
        }
      }
    }
    front = next;
  }
  return -1;
}

function scatter(chance) {
  const all = [{ x: chance.int(2), y: 2, length: 2, across: true }];
  for (let tries = 0; tries < 60 && all.length < 9; tries++) {
    const across = chance.next() < 0.4, length = chance.next() < 0.7 ? 2 : 3;
    const x = chance.int(SIDE - (across ? length - 1 : 0)), y = chance.int(SIDE - (across ? 0 : length - 1));
    if (across && y === 2) continue;
    const cells = grid(all), block = { x, y, length, across };
    if (grid([block]).every((n, place) => n === -1 || cells[place] === -1)) all.push(block);
  }
  return all;
}

function begin(chance) {
  moves = 0;
  held = null;
  do blocks = scatter(chance); while (distance(blocks) < 5);
  draw();
}

function draw(by = 0) {
  empty(board());
  const svg = make("svg", { viewBox: "0 0 440 440", width: 440, height: 440 }, board());
  for (let n = 0; n < SIDE * SIDE; n++) {
    make("rect", { x: EDGE + (n % SIDE) * SIZE + 2, y: EDGE + Math.floor(n / SIDE) * SIZE + 2,
      width: SIZE - 4, height: SIZE - 4, rx: 8, fill: "#f1eee6" }, svg);
  }
  make("path", { d: `M428,${EDGE + 2 * SIZE + 22} l10,12 l-10,12`, fill: "none", stroke: "#e4572e", "stroke-width": 5 }, svg);
  blocks.forEach(({ x, y, length, across }, index) => {
    const shift = held && held.index === index ? by : 0;
    const button = make("button", {
      at: `block-${index}`, "aria-label": index ? `block ${index}` : "key block",
      box: [EDGE + x * SIZE + 4 + (across ? shift : 0), EDGE + y * SIZE + 4 + (across ? 0 : shift),
        (across ? length : 1) * SIZE - 8, (across ? 1 : length) * SIZE - 8],
      style: { background: index ? COLOURS[index % COLOURS.length] : "#e4572e", borderRadius: "12px", color: "#fff" },
    }, board());
    if (index) return;
    const picture = make("svg", { viewBox: "0 0 128 60", width: 128, height: 60 }, button);
    make("path", { d: "M44,30 H96 V42 M82,30 V40", stroke: "#fff", "stroke-width": 7, fill: "none", "stroke-linecap": "round" }, picture);
    make("circle", { cx: 34, cy: 30, r: 11, fill: "none", stroke: "#fff", "stroke-width": 7 }, picture);
  });
  const end = freed(blocks);
  show({ Moves: moves }, end ? "The key is free" : "Drag blocks along their length", end ? "won" : "");
}

const reach = (x, y) => {
  const along = held.across ? x - held.from[0] : y - held.from[1];
  return Math.max(-held.back * SIZE, Math.min(held.on * SIZE, along));
};
follow(board(), {
  down(x, y) {
    const column = Math.floor((x - EDGE) / SIZE), row = Math.floor((y - EDGE) / SIZE);
    if (freed(blocks) || column < 0 || row < 0 || column >= SIDE || row >= SIDE) return false;
    const index = grid(blocks)[row * SIDE + column];
    if (index < 0) return false;
    const [back, on] = room(blocks, index);
    held = { index, from: [x, y], back, on, across: blocks[index].across };
    return true;
  },
  move: (x, y) => draw(reach(x, y)),
  up(x, y) {
    const by = Math.round(reach(x, y) / SIZE);
    blocks = moved(blocks, held.index, by);
    if (by) moves++;
    held = null;
    draw();
  },
});

publish({
  name: "free-the-key", version: "1", begin,
  state: () => ({ side: SIDE, blocks, moves }),
  more() {
    const box = board().getBoundingClientRect(), found = {};
    for (let n = 0; n < SIDE * SIDE; n++) {
      found[`cell-${n}`] = [box.left + EDGE + (n % SIDE + 0.5) * SIZE, box.top + EDGE + (Math.floor(n / SIDE) + 0.5) * SIZE];
    }
    return found;
  },
});
