// Drive in one of four lanes; what comes towards you must be passed in a free one.
"use strict";

const LANES = 4, WIDE = 100, LEFT = 20, NEAR = 400, LENGTH_MS = 40000, HEIGHT = 500;
const COLOURS = ["#3d6fb6", "#7d5ba6", "#c98a1b", "#1f7a8c"];
let rows = [], plan = [], now = 0, lane = 1, passed = 0, crashed = false;

const over = () => now >= LENGTH_MS || crashed;

function begin(chance) {
  rows = [];
  plan = [];
  now = passed = 0;
  lane = 1;
  crashed = false;
  // From every free lane of a row a free one of the next row is at most one lane away: whoever looks
  // one row ahead is never caught.
  let before = [1];
  for (let at = 800, gap = 1500; at < LENGTH_MS - 2800; at += gap, gap = Math.max(1000, gap - 20)) {
    const free = new Set([chance.int(LANES), ...(chance.next() < 0.3 ? [chance.int(LANES)] : [])]);
    for (const lane of before) if (![lane - 1, lane, lane + 1].some((n) => free.has(n))) free.add(lane);
    const blocked = [...Array(LANES).keys()].filter((n) => !free.has(n));
    plan.push({ at: Math.round(at / STEP_MS) * STEP_MS, blocked, colour: chance.int(4) });
    before = [...free];
  }
  restart();
  draw();
}

function step() {
  if (over()) return;
  now += STEP_MS;
  for (const row of plan) if (row.at === now) rows.push({ y: -60, blocked: row.blocked, colour: row.colour });
  const speed = 1.7 + (now / LENGTH_MS) * 0.6;
  for (const row of rows) row.y += speed;
  crashed = rows.some((row) => Math.abs(row.y - NEAR) < 62 && row.blocked.includes(lane));
  passed += rows.filter((row) => row.y > HEIGHT + 40).length;
  rows = rows.filter((row) => row.y <= HEIGHT + 40);
}

window.addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!by || over()) return;
  lane = Math.max(0, Math.min(LANES - 1, lane + by));
  draw();
});

function car(svg, n, y, fill) {
  const x = LEFT + n * WIDE + 28;
  make("rect", { x, y: y - 36, width: 44, height: 72, rx: 12, fill }, svg);
  make("rect", { x: x + 7, y: y - 18, width: 30, height: 16, rx: 4, fill: "#e8f0f4" }, svg);
  make("rect", { x: x + 7, y: y + 14, width: 30, height: 10, rx: 4, fill: "#e8f0f4", opacity: 0.7 }, svg);
}

function draw() {
  empty(board());
  const svg = make("svg", { viewBox: `0 0 440 ${HEIGHT}`, width: 440, height: HEIGHT }, board());
  make("rect", { x: 0, y: 0, width: 440, height: HEIGHT, fill: "#cfe3c4" }, svg);
  make("rect", { x: LEFT - 4, y: 0, width: 4 * WIDE + 8, height: HEIGHT, fill: "#dcdfe2" }, svg);
  const shift = (now / 8) % 60;
  for (let n = 1; n < LANES; n++) {
    make("line", { x1: LEFT + n * WIDE, x2: LEFT + n * WIDE, y1: shift - 60, y2: HEIGHT, stroke: "#fff",
      "stroke-width": 4, "stroke-dasharray": "30 30" }, svg);
  }
  for (const row of rows) for (const n of row.blocked) car(svg, n, row.y, COLOURS[row.colour]);
  car(svg, lane, NEAR, crashed ? "#22303c" : "#e4572e");
  const left = Math.ceil((LENGTH_MS - now) / 1000);
  const hint = crashed ? "Crashed" : over() ? "You have arrived" : "Arrow keys change the lane of the orange car";
  show({ Passed: passed, Seconds: left }, hint, crashed ? "lost" : over() ? "won" : "");
}

const restart = beating({ step, draw });
publish({
  name: "lanes", version: "1", begin,
  state: () => ({ now, length: LENGTH_MS, rows, lane, lanes: LANES, passed, crashed, near: NEAR }),
});
