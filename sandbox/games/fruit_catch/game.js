// Fruit falls; the basket runs to where the pointer is. Three lives, one for each fruit on the ground.
"use strict";

const WIDTH = 440, HEIGHT = 500, GROUND = 452, SPEED = 4.2, REACH = 46, LENGTH_MS = 40000, LIVES = 3;
const COLOURS = ["#e4572e", "#3f9b6b", "#7d5ba6", "#eeb033"];
let fruit = [], plan = [], now = 0, basket = 220, target = 220, score = 0, lives = LIVES;

const over = () => now >= LENGTH_MS || lives <= 0;

function begin(chance) {
  fruit = [];
  plan = [];
  now = score = 0;
  lives = LIVES;
  basket = target = WIDTH / 2;
  // Each fruit can be reached from the one before it.
  let x = WIDTH / 2;
  for (let at = 500, gap = 1300; at < LENGTH_MS - 2600; at += gap, gap = Math.max(700, gap - 25)) {
    const reach = Math.min(320, (gap / STEP_MS) * SPEED * 0.8);
    x = Math.max(40, Math.min(WIDTH - 40, x + (chance.next() * 2 - 1) * reach));
    const falls = 2600 - Math.round((at / LENGTH_MS) * 800);
    plan.push({ at: Math.round(at / STEP_MS) * STEP_MS, x: Math.round(x), kind: chance.int(4), speed: (GROUND - 30) / (falls / STEP_MS) });
  }
  restart();
  draw();
}

function step() {
  if (over()) return;
  now += STEP_MS;
  basket += Math.max(-SPEED, Math.min(SPEED, target - basket));
  for (const one of plan) if (one.at === now) fruit.push({ x: one.x, y: 30, kind: one.kind, speed: one.speed });
  for (const one of fruit) one.y += one.speed;
  const caught = fruit.filter((one) => one.y >= GROUND - 22 && Math.abs(one.x - basket) <= REACH);
  score += caught.length;
  fruit = fruit.filter((one) => !caught.includes(one));
  lives -= fruit.filter((one) => one.y >= GROUND).length;
  fruit = fruit.filter((one) => one.y < GROUND);
}

const aim = (x) => { target = Math.max(40, Math.min(WIDTH - 40, Math.round(x))); };
board().addEventListener("pointermove", (event) => aim(event.clientX - board().getBoundingClientRect().left));
board().addEventListener("pointerdown", (event) => aim(event.clientX - board().getBoundingClientRect().left));
window.addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -90, ArrowRight: 90 }[event.key];
  if (by) aim(target + by);
});

function draw() {
  empty(board());
  const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT }, board());
  make("rect", { x: 0, y: 0, width: WIDTH, height: HEIGHT, fill: "#eaf3f7" }, svg);
  make("rect", { x: 0, y: GROUND + 18, width: WIDTH, height: HEIGHT, fill: "#cfe3c4" }, svg);
  for (const { x, y, kind } of fruit) {
    make("circle", { cx: x, cy: y, r: 17, fill: COLOURS[kind] }, svg);
    make("path", { d: `M${x},${y - 15}q2,-9 10,-11`, stroke: "#5b4a3a", "stroke-width": 4, fill: "none", "stroke-linecap": "round" }, svg);
  }
  const x = Math.round(basket);
  make("path", { d: `M${x - 46},${GROUND - 14}H${x + 46}L${x + 34},${GROUND + 26}H${x - 34}Z`, fill: "#c08a4e" }, svg);
  make("rect", { x: x - 50, y: GROUND - 22, width: 100, height: 12, rx: 6, fill: "#9a6b38" }, svg);
  const left = Math.ceil((LENGTH_MS - now) / 1000);
  const hint = over() ? (lives > 0 ? "Time is up" : "No lives left") : "The basket follows the pointer";
  show({ Score: score, Lives: lives, Seconds: left }, hint, over() ? (lives > 0 ? "won" : "lost") : "");
}

const restart = beating({ step, draw });
publish({
  name: "fruit-catch", version: "1", begin,
  state: () => ({ now, length: LENGTH_MS, fruit, basket, target, score, lives, ground: GROUND }),
  more() {
    const box = board().getBoundingClientRect();
    return Object.fromEntries(fruit.map(({ x }, n) => [`below-${n}`, [box.left + x, box.top + GROUND]]));
  },
});
