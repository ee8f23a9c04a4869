// Moles look out of nine holes for a short time: hit them, but not those that wear a red helmet.
"use strict";

const SIDE = 3, SIZE = 140, EDGE = 10, LENGTH_MS = 30000, LIVES = 3;
let moles = [], now = 0, score = 0, lives = LIVES, missed = 0, plan = [];

const over = () => now >= LENGTH_MS || lives <= 0;

function begin(chance) {
  moles = [];
  plan = [];
  now = score = missed = 0;
  lives = LIVES;
  // All visits are drawn up before the start: {hole, from, to, bad}, never two at once in a hole.
  const free = new Array(SIDE * SIDE).fill(0);
  for (let from = 600; from < LENGTH_MS - 2200; from += 10 * (65 + chance.int(35))) {
    const holes = [...free.keys()].filter((hole) => free[hole] <= from);
    const hole = chance.pick(holes), to = from + 10 * (170 + chance.int(50));
    free[hole] = to + 300;
    plan.push({ hole, from, to, bad: chance.next() < 0.2 });
  }
  restart();
  draw();
}

function step() {
  if (over()) return;
  now += STEP_MS;
  for (const visit of plan) {
    if (visit.from === now) moles.push({ ...visit, hit: false });
  }
  missed += moles.filter((mole) => mole.to <= now && !mole.hit && !mole.bad).length;
  moles = moles.filter((mole) => mole.to > now);
}

function press(hole) {
  const mole = moles.find((one) => one.hole === hole && !one.hit);
  if (over() || !mole) return;
  mole.hit = true;
  mole.to = now + 200;
  if (mole.bad) lives--;
  else score++;
  draw();
}

function draw() {
  empty(board());
  for (let hole = 0; hole < SIDE * SIDE; hole++) {
    const button = make("button", { at: `hole-${hole}`, "aria-label": `hole ${hole + 1}`,
      box: [EDGE + (hole % SIDE) * SIZE, EDGE + Math.floor(hole / SIDE) * SIZE, SIZE, SIZE] }, board());
    button.onpointerdown = () => press(hole);
    const svg = make("svg", { viewBox: "0 0 140 140", width: SIZE, height: SIZE }, button);
    make("rect", { x: 6, y: 6, width: 128, height: 128, rx: 16, fill: "#e3efd9" }, svg);
    make("path", { d: "M22,100a48,20 0 1,0 96,0a48,20 0 1,0 -96,0Z", fill: "#5b4a3a" }, svg);
    const mole = moles.find((one) => one.hole === hole);
    if (!mole) continue;
    make("path", { d: "M38,102V66a32,34 0 0,1 64,0V102a32,12 0 0,1 -64,0Z", fill: mole.hit ? "#c9bfb3" : "#a9805a" }, svg);
    if (mole.bad) make("path", { d: "M36,60a34,34 0 0,1 68,0Z", fill: "#e4572e" }, svg);
    make("circle", { cx: 58, cy: 72, r: 5, fill: "#22303c" }, svg);
    make("circle", { cx: 82, cy: 72, r: 5, fill: "#22303c" }, svg);
    make("circle", { cx: 70, cy: 86, r: 8, fill: "#e7a8a0" }, svg);
  }
  const left = Math.ceil((LENGTH_MS - now) / 1000);
  const hint = over() ? (lives > 0 ? "Time is up" : "No lives left") : "Hit the moles, spare those with a red helmet";
  show({ Score: score, Lives: lives, Seconds: left }, hint, over() ? (lives > 0 ? "won" : "lost") : "");
}

const restart = beating({ step, draw });
publish({
  name: "whack", version: "1", begin,
  state: () => ({ now, length: LENGTH_MS, moles, score, lives, missed, visits: plan.length }),
});
