// Slide the numbered tiles into order, the gap in the last place.
"use strict";

const SIDE = 3, SIZE = 132, EDGE = 22;
let order = [], moves = 0;
const COLOURS = ["#1f7a8c", "#3d6fb6", "#7d5ba6"];

const solved = () => order.every((tile, place) => tile === (place + 1) % order.length);
const near = (a, b) => {
  const dx = Math.abs((a % SIDE) - (b % SIDE));
  const dy = Math.abs(Math.floor(a / SIDE) - Math.floor(b / SIDE));
  return dx + dy === 1;
};

function slide(place) {
  const gap = order.indexOf(0);
  if (!near(place, gap)) return false;
  order[gap] = order[place];
  order[place] = 0;
  return true;
}

function begin(chance, { shuffles = 40 }) {
  moves = 0;
  order = [1, 2, 3, 4, 5, 6, 7, 8, 0];
  // Shuffled by moves, so that it can be undone; never straight back.
  let last = -1;
  for (let left = shuffles; left > 0 || solved(); left--) {
    const gap = order.indexOf(0);
    const place = chance.pick([...order.keys()].filter((p) => near(p, gap) && p !== last));
    slide(place);
    last = gap;
  }
  draw();
}

function press(place) {
  if (solved() || !slide(place)) return;
  moves++;
  draw();
}

function draw() {
  empty(board());
  order.forEach((tile, place) => {
    if (!tile) return;
    const button = make("button", {
      at: `tile-${tile}`, "aria-label": `tile ${tile}`,
      box: [EDGE + (place % SIDE) * SIZE + 4, EDGE + Math.floor(place / SIDE) * SIZE + 4, SIZE - 8, SIZE - 8],
      text: String(tile),
      style: {
        background: COLOURS[Math.floor((tile - 1) / SIDE)], color: "#fff", fontSize: "44px",
        fontWeight: "700", borderRadius: "14px",
      },
    }, board());
    button.onclick = () => press(place);
  });
  const end = solved();
  show({ Moves: moves }, end ? "All in order" : "Order: 1 2 3, 4 5 6, 7 8 and the gap", end ? "won" : "");
}

publish({ name: "tiles", version: "1", begin, state: () => ({ side: SIDE, order, moves }) });
