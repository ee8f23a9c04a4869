// Turn two cards at a time; equal ones stay open. Nothing moves by itself: two different cards stay
// open until the next press.
"use strict";

const SIDE = 4, SIZE = 100, EDGE = 20, SPARE = 12;
const NAMES = Object.keys(ICONS);
let cards = [], found = [], open = [], turns = 0, misses = 0;

function begin(chance, { pairs = NAMES.length }) {
  const names = NAMES.slice(0, pairs);
  cards = chance.shuffle([...names, ...names]);
  found = cards.map(() => false);
  open = [];
  turns = misses = 0;
  draw();
}

const over = () => found.every(Boolean) || misses >= SPARE;

function press(index) {
  if (over() || found[index]) return;
  if (open.length === 2) open = [];
  if (open.includes(index)) return;
  open.push(index);
  if (open.length === 2) {
    turns++;
    const [a, b] = open;
    if (cards[a] === cards[b]) {
      found[a] = found[b] = true;
      open = [];
    } else misses++;
  }
  draw();
}

function draw() {
  empty(board());
  cards.forEach((name, index) => {
    const up = found[index] || open.includes(index);
    const button = make("button", {
      at: `card-${index}`, "aria-label": `card ${index + 1}: ${up ? name : "face down"}`,
      box: [EDGE + (index % SIDE) * SIZE + 5, EDGE + Math.floor(index / SIDE) * SIZE + 5, SIZE - 10, SIZE - 10],
      style: {
        background: found[index] ? "#e6f3ea" : up ? "#fff" : "#1f7a8c", borderRadius: "14px",
        border: up ? "2px solid #d5d9dc" : "0",
      },
    }, board());
    button.onclick = () => press(index);
    const svg = make("svg", { viewBox: "-10 -10 120 120", width: 86, height: 86 }, button);
    if (up) make("path", { d: ICONS[name][1], fill: ICONS[name][0] }, svg);
    else make("path", { d: "M30,50L50,30L70,50L50,70Z", fill: "none", stroke: "#bfe0e6", "stroke-width": 5 }, svg);
  });
  const won = found.every(Boolean);
  const hint = won ? "All pairs found" : misses >= SPARE ? "Too many misses" : "Find the pairs";
  show({ Pairs: found.filter(Boolean).length / 2, "Misses left": SPARE - misses }, hint, won ? "won" : over() ? "lost" : "");
}

publish({
  name: "memory-pairs", version: "1", begin,
  state: () => ({ cards, found, open, turns, misses, spare: SPARE }),
});
