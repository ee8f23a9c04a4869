// Turn two cards at a time; equal ones stay open. Nothing moves by itself: two different cards stay
// open until the next press.
"use strict";

const SIDE = 4, SIZE = 100, EDGE = 20, SPARE = 12;
const NAMES = ["sun", "moon", "heart", "leaf", "drop", "star", "house", "cross"];
const SHAPES = {
  sun: ["#eeb033", "M50,30a20,20 0 1,0 .1,0Z M47,12h6v12h-6Z M47,76h6v12h-6Z M12,47h12v6h-12Z M76,47h12v6h-12Z"],
  moon: ["#7d5ba6", "M60,16a36,36 0 1,0 22,52a30,30 0 1,1 -22,-52Z"],
  heart: ["#d6538a", "M50,84C10,56 12,22 34,22c9,0 14,6 16,12c2,-6 7,-12 16,-12c22,0 24,34 -16,62Z"],
  leaf: ["#3f9b6b", "M20,80C14,36 44,16 82,18C86,58 62,88 30,76L62,42L24,84Z"],
  drop: ["#3d6fb6", "M50,12C66,38 76,50 76,62a26,26 0 0,1 -52,0C24,50 34,38 50,12Z"],
  star: ["#e4572e", "M50,12L61,38L89,40L67,58L75,86L50,70L25,86L33,58L11,40L39,38Z"],
  house: ["#c08a4e", "M14,50L50,16L86,50H76V84H58V62H42V84H24V50Z"],
  cross: ["#1f7a8c", "M38,14H62V38H86V62H62V86H38V62H14V38H38Z"],
};
let cards = [], found = [], open = [], turns = 0, misses = 0;

function begin(chance) {
  cards = chance.shuffle([...NAMES, ...NAMES]);
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
    if (up) make("path", { d: SHAPES[name][1], fill: SHAPES[name][0] }, svg);
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
