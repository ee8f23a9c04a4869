// Open every cell without a mine. Fields are drawn until one can be solved without guessing.
"use strict";

const SIDE = 8, SIZE = 52, EDGE = 12, MINES = 9;
const COLOURS = ["", "#3d6fb6", "#3f9b6b", "#e4572e", "#7d5ba6", "#8a4b2a", "#1f7a8c", "#22303c", "#6b7782"];
let mines = [], open = [], flags = [], lost = false, moves = 0;

const around = (cell) => {
  const x = cell % SIDE, y = Math.floor(cell / SIDE), out = [];
  for (let b = Math.max(0, y - 1); b <= Math.min(SIDE - 1, y + 1); b++) {
    for (let a = Math.max(0, x - 1); a <= Math.min(SIDE - 1, x + 1); a++) {
      if (a !== x || b !== y) out.push(b * SIDE + a);
    }
  }
  return out;
};
const number = (cell) => around(cell).filter((near) => mines[near]).length;

function uncover(all, cell) {
  const queue = [cell];
  while (queue.length) {
    const here = queue.pop();
    if (all[here]) continue;
    all[here] = true;
    if (!mines[here] && number(here) === 0) queue.push(...around(here));
  }
}

// What follows from the numbers shown: cells that are safe for certain. One number, or two neighbours
// of which one has all the closed cells of the other.
function safe(all) {
  const facts = [];
  const known = new Set();
  const found = new Set();
  all.forEach((shown, cell) => {
    if (!shown || mines[cell]) return;
    const closed = around(cell).filter((near) => !all[near]);
    if (closed.length) facts.push([closed, number(cell)]);
  });
  for (let again = true; again; ) {
    again = false;
    const now = facts.map(([cells, n]) => {
      const left = cells.filter((cell) => !known.has(cell) && !found.has(cell));
      return [left, n - cells.filter((cell) => known.has(cell)).length];
    });
    for (const [a, n] of now.slice()) {
      for (const [b, m] of now) {
        if (a !== b && a.length && a.length < b.length && a.every((cell) => b.includes(cell))) {
          now.push([b.filter((cell) => !a.includes(cell)), m - n]);
        }
      }
      if (now.length > 400) break;
    }
    for (const [cells, n] of now) {
      if (!cells.length || (n !== 0 && n !== cells.length)) continue;
      for (const cell of cells) {
        const place = n === 0 ? found : known;
        if (!place.has(cell)) { place.add(cell); again = true; }
      }
    }
  }
  return [...found];
}

function solvable() {
  const all = open.slice();
  for (;;) {
    if (all.every((shown, cell) => shown || mines[cell])) return true;
    const next = safe(all);
    if (!next.length) return false;
    for (const cell of next) uncover(all, cell);
  }
}

function begin(chance) {
  moves = 0;
  lost = false;
  flags = new Array(SIDE * SIDE).fill(false);
  const start = (2 + chance.int(4)) * SIDE + 2 + chance.int(4);
  do {
    const free = [...flags.keys()].filter((cell) => cell !== start && !around(start).includes(cell));
    const chosen = new Set(chance.shuffle(free).slice(0, MINES));
    mines = flags.map((_, cell) => chosen.has(cell));
    open = new Array(SIDE * SIDE).fill(false);
    uncover(open, start);
  } while (open.filter(Boolean).length > 40 || !solvable());
  draw();
}

const won = () => !lost && open.every((shown, cell) => shown !== mines[cell]);

function press(cell) {
  if (lost || won() || open[cell] || flags[cell]) return;
  moves++;
  if (mines[cell]) {
    lost = true;
    open[cell] = true;
  } else uncover(open, cell);
  draw();
}

function flag(cell) {
  if (lost || won() || open[cell]) return;
  flags[cell] = !flags[cell];
  draw();
}

function draw() {
  empty(board());
  open.forEach((shown, cell) => {
    const bomb = mines[cell] && (shown || lost), n = shown && !mines[cell] ? number(cell) : 0;
    const face = bomb ? "mine" : shown ? String(n) : flags[cell] ? "flag" : "closed";
    const button = make("button", {
      at: `cell-${cell}`, "aria-label": `row ${Math.floor(cell / SIDE) + 1} column ${cell % SIDE + 1}: ${face}`,
      box: [EDGE + (cell % SIDE) * SIZE + 2, EDGE + Math.floor(cell / SIDE) * SIZE + 2, SIZE - 4, SIZE - 4],
      text: n ? String(n) : "",
      style: {
        background: bomb ? (shown ? "#e4572e" : "#f0b7a6") : shown ? "#f4f1ea" : "#a9bfcc", borderRadius: "8px",
        color: COLOURS[n], fontWeight: "700", fontSize: "24px",
        boxShadow: shown ? "none" : "inset 0 -3px 0 #8ea6b5",
      },
    }, board());
    button.onclick = () => press(cell);
    button.oncontextmenu = (event) => { event.preventDefault(); flag(cell); };
    if (!bomb && !(flags[cell] && !shown)) return;
    const svg = make("svg", { viewBox: "0 0 48 48", width: 48, height: 48 }, button);
    if (bomb) make("circle", { cx: 24, cy: 24, r: 11, fill: "#22303c" }, svg);
    else make("path", { d: "M17,38V10L36,18L17,26", fill: "#e4572e", stroke: "#22303c", "stroke-width": 3 }, svg);
  });
  const left = open.filter((shown, cell) => !shown && !mines[cell]).length;
  const end = won() ? "won" : lost ? "lost" : "";
  show({ Mines: MINES, "To open": left }, { won: "All safe cells are open", lost: "That was a mine", "": "A number counts the mines around it" }[end], end);
}

publish({
  name: "minefield", version: "1", begin,
  state: () => ({ side: SIDE, mines, open, flags, lost, moves, safe: safe(open) }),
});
