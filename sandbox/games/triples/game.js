// Take uncovered tiles into a row of seven; three equal ones vanish. A full row loses.
"use strict";

const SIZE = 76, ROOM = 7, NAMES = Object.keys(ICONS);
// Layers from the ground up: columns, rows, and where the first tile lies.
const LAYERS = [[5, 4, 30, 68], [4, 3, 68, 106], [2, 2, 144, 144]];
// tiles: {x, y, layer, kind, taken}; row: numbers of tiles.
let tiles = [], row = [], moves = 0;

const covers = (a, b) => a.layer > b.layer && Math.abs(a.x - b.x) < SIZE && Math.abs(a.y - b.y) < SIZE;
const free = (all, index) => !all[index].taken && !all.some((tile) => !tile.taken && covers(tile, all[index]));
const cleared = () => tiles.every((tile) => tile.taken) && row.length === 0;
const over = () => cleared() || row.length >= ROOM;

function begin(chance) {
  row = [];
  moves = 0;
  tiles = LAYERS.flatMap(([columns, rows, left, top], layer) => Array.from({ length: columns * rows }, (_, n) => ({
    x: left + (n % columns) * SIZE, y: top + Math.floor(n / columns) * SIZE, layer, kind: "", taken: false,
  })));
  // One way of taking all tiles is played first; kinds are dealt along it so that at most two kinds
  // are open at a time. So the level can be won.
  const kinds = chance.shuffle(Array.from({ length: tiles.length / 3 }, (_, n) => NAMES[n % NAMES.length]));
  const hands = [];
  for (let n = 0; n < tiles.length; n++) {
    if (!hands.length || (hands.length < 2 && kinds.length && chance.next() < 0.4)) hands.push([kinds.pop(), 3]);
    const hand = chance.pick(hands);
    const index = chance.pick([...tiles.keys()].filter((one) => free(tiles, one)));
    tiles[index].kind = hand[0];
    tiles[index].taken = true;
    if (--hand[1] === 0) hands.splice(hands.indexOf(hand), 1);
  }
  for (const tile of tiles) tile.taken = false;
  draw();
}

function press(index) {
  if (over() || !free(tiles, index)) return;
  tiles[index].taken = true;
  moves++;
  row.push(index);
  const same = row.filter((one) => tiles[one].kind === tiles[index].kind);
  if (same.length === 3) row = row.filter((one) => !same.includes(one));
  draw();
}

function face(parent, kind, size, dim) {
  const svg = make("svg", { viewBox: "-14 -14 128 128", width: size, height: size }, parent);
  make("path", { d: ICONS[kind][1], fill: dim ? "#b9bec3" : ICONS[kind][0] }, svg);
}

function draw() {
  empty(board());
  tiles.forEach((tile, index) => {
    if (tile.taken) return;
    const open = free(tiles, index);
    const button = make("button", {
      at: `tile-${index}`, "aria-label": `${tile.kind}${open ? "" : ", covered"}`,
      box: [tile.x + 1, tile.y + 1, SIZE - 2, SIZE - 2],
      style: {
        background: open ? "#fffdf8" : "#e3e1db", border: `2px solid ${open ? "#cfc5b2" : "#d3cfc6"}`,
        boxShadow: open ? "0 3px 0 #cfc5b2" : "none", borderRadius: "12px",
      },
    }, board());
    button.onclick = () => press(index);
    face(button, tile.kind, SIZE - 6, !open);
  });
  const tray = document.getElementById("tray");
  empty(tray);
  for (let n = 0; n < ROOM; n++) {
    const box = make("div", { style: { position: "absolute", left: `${n * 63}px`, top: "14px", width: "59px", height: "59px",
      borderRadius: "10px", background: row[n] === undefined ? "#ece8de" : "#fffdf8", border: "1px solid #d3cfc6" } }, tray);
    if (row[n] !== undefined) face(box, tiles[row[n]].kind, 57, false);
  }
  const left = tiles.filter((tile) => !tile.taken).length;
  const end = cleared() ? "won" : over() ? "lost" : "";
  show({ Tiles: left, Room: ROOM - row.length }, { won: "All tiles are gone", lost: "The row is full", "": "Three equal tiles in the row vanish" }[end], end);
}

publish({
  name: "triples", version: "1", begin,
  state: () => ({ tiles: tiles.map((tile, n) => ({ ...tile, free: free(tiles, n) })), row, room: ROOM, moves }),
});
