// A ball, a paddle, a wall of bricks. Physics run in steps of 1/60 s, whatever the frame rate.
"use strict";

const SIDE = 440, STEP_MS = 1000 / 60, SPEED = 7.5, RADIUS = 8, PADDLE = { width: 84, height: 12, y: 410 };
const COLUMNS = 10, ROWS = 5, BRICK = { width: 42, height: 20, left: 10, top: 44 };
const COLOURS = ["#e4572e", "#eeb033", "#3f9b6b", "#1f7a8c", "#7d5ba6"];
let bricks = [], all = 0, ball = null, paddle = 0, lives = 0, over = false, chance = null;
let last = 0, left = 0, frame = 0;

const canvas = document.createElement("canvas");
[canvas.width, canvas.height] = [SIDE, SIDE];
board().append(canvas);
const pen = canvas.getContext("2d");

function begin(given) {
  chance = given;
  bricks = [];
  for (let n = 0; n < COLUMNS * ROWS; n++) if (chance.next() < 0.9) bricks.push(n);
  [all, lives, over, left, paddle] = [bricks.length, 3, false, 0, SIDE / 2];
  serve();
  last = performance.now();
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(run);
  draw();
}

function serve() {
  const angle = (chance.next() - 0.5) * 1.2;
  ball = { x: paddle, y: 300, vx: SPEED * Math.sin(angle), vy: SPEED * Math.cos(angle) };
}

function run(now) {
  left += now - last;
  last = now;
  while (left >= STEP_MS - 0.001) {
    left -= STEP_MS;
    if (!over) step();
  }
  draw();
  frame = requestAnimationFrame(run);
}

function step() {
  ball.x += ball.vx;
  ball.y += ball.vy;
  if (ball.x < RADIUS || ball.x > SIDE - RADIUS) {
    ball.vx = -ball.vx;
    ball.x = Math.min(SIDE - RADIUS, Math.max(RADIUS, ball.x));
  }
  if (ball.y < RADIUS) [ball.vy, ball.y] = [-ball.vy, RADIUS];
  const onPaddle = Math.abs(ball.x - paddle) < PADDLE.width / 2 + RADIUS;
  if (ball.vy > 0 && ball.y > PADDLE.y - RADIUS && ball.y < PADDLE.y + PADDLE.height && onPaddle) {
    // Where the ball hits the paddle says where it goes, as in the old machines.
    const angle = ((ball.x - paddle) / (PADDLE.width / 2 + RADIUS)) * 1.05;
    ball = { x: ball.x, y: PADDLE.y - RADIUS, vx: SPEED * Math.sin(angle), vy: -SPEED * Math.cos(angle) };
  }
  hit();
  if (ball.y > SIDE + RADIUS) {
    lives--;
    if (lives === 0) over = true;
    else serve();
  }
  if (bricks.length === 0) over = true;
}

const corner = (n) => [
  BRICK.left + (n % COLUMNS) * BRICK.width, BRICK.top + Math.floor(n / COLUMNS) * BRICK.height,
];

function hit() {
  for (const n of bricks) {
    const [x, y] = corner(n);
    const dx = ball.x - Math.min(x + BRICK.width, Math.max(x, ball.x));
    const dy = ball.y - Math.min(y + BRICK.height, Math.max(y, ball.y));
    if (dx * dx + dy * dy >= RADIUS * RADIUS) continue;
    bricks = bricks.filter((other) => other !== n);
    if (Math.abs(dx) > Math.abs(dy)) ball.vx = Math.abs(ball.vx) * Math.sign(dx);
    else ball.vy = Math.abs(ball.vy) * (dy > 0 ? 1 : -1);
    return;
  }
}

function shift(x) {
  const half = PADDLE.width / 2;
  paddle = Math.min(SIDE - half, Math.max(half, x));
  draw();
}

window.addEventListener("pointermove", (event) => shift(event.clientX - canvas.getBoundingClientRect().left));
window.addEventListener("keydown", (event) => {
  if (event.key === "ArrowLeft") shift(paddle - 44);
  if (event.key === "ArrowRight") shift(paddle + 44);
});

function block(x, y, width, height, radius, colour) {
  pen.fillStyle = colour;
  pen.beginPath();
  pen.roundRect(x, y, width, height, radius);
  pen.fill();
}

function draw() {
  pen.fillStyle = "#22303c";
  pen.fillRect(0, 0, SIDE, SIDE);
  for (const n of bricks) {
    const [x, y] = corner(n);
    block(x + 2, y + 2, BRICK.width - 4, BRICK.height - 4, 4, COLOURS[Math.floor(n / COLUMNS)]);
  }
  block(paddle - PADDLE.width / 2, PADDLE.y, PADDLE.width, PADDLE.height, 6, "#f7f5f0");
  pen.fillStyle = "#eeb033";
  pen.beginPath();
  pen.arc(ball.x, ball.y, RADIUS, 0, 2 * Math.PI);
  pen.fill();
  const won = bricks.length === 0;
  const hint = won ? "All bricks are broken" : over ? "No ball is left" : "The paddle follows the mouse";
  show({ Bricks: bricks.length, Balls: lives }, hint, won ? "won" : over ? "lost" : "");
}

publish({
  name: "breakout", version: "1", begin,
  state: () => ({ bricks, all, ball, paddle, lives, over, radius: RADIUS, line: PADDLE.y, side: SIDE }),
  more() {
    const box = canvas.getBoundingClientRect();
    return { start: [box.left, box.top + PADDLE.y] };
  },
});
