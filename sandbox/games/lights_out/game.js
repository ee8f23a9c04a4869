// Put all lamps out; a press turns a lamp and its neighbours.
"use strict";

const EDGE = 20;
let side = 4, size = 100;
let lamps = [], moves = 0;

function toggle(all, index) {
  const x = index % side, y = Math.floor(index / side);
  for (const [dx, dy] of [[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]]) {
    const a = x + dx, b = y + dy;
    if (a >= 0 && b >= 0 && a < side && b < side) all[b * side + a] ^= 1;
  }
}

function begin(chance, { side: wanted = 4, presses = 4 }) {
  moves = 0;
  side = wanted;
  size = 400 / side;
  lamps = new Array(side * side).fill(0);
  // Pressed from darkness, so that darkness can be reached again.
  while (lamps.filter(Boolean).length < 4) {
    const pressed = chance.shuffle([...lamps.keys()]).slice(0, presses + chance.int(presses));
    lamps.fill(0);
    for (const index of pressed) toggle(lamps, index);
  }
  draw();
}

function press(index) {
  if (!lamps.some(Boolean)) return;
  toggle(lamps, index);
  moves++;
  draw();
}

function draw() {
  empty(board());
  lamps.forEach((lit, index) => {
    const x = EDGE + (index % side) * size, y = EDGE + Math.floor(index / side) * size;
    const button = make("button", {
      at: `lamp-${index}`, box: [x, y, size, size],
      "aria-label": `lamp ${index + 1}: ${lit ? "on" : "off"}`,
    }, board());
    button.onclick = () => press(index);
    const svg = make("svg", { viewBox: "0 0 100 100", width: size, height: size }, button);
    make("rect", {
      x: 5, y: 5, width: 90, height: 90, rx: 16, fill: lit ? "#f6c445" : "#dfe3e6",
      stroke: lit ? "#d99a1c" : "#c6ccd1", "stroke-width": 2,
    }, svg);
    make("circle", { cx: 50, cy: 50, r: 20, fill: lit ? "#fff3cf" : "#cdd3d8" }, svg);
  });
  const left = lamps.filter(Boolean).length;
  const hint = left ? "A press also turns the lamps above, below, left and right" : "All lamps are out";
  show({ Lit: left, Moves: moves }, hint, left ? "" : "won");
}

publish({ name: "lights-out", version: "1", begin, state: () => ({ side, lamps, moves }) });
