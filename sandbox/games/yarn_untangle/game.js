// Drag the knots until no two threads cross.
"use strict";

const COLOURS = ["#e4572e", "#1f7a8c", "#7d5ba6", "#3f9b6b", "#c98a1b", "#3d6fb6", "#d6538a"];
const REACH = 24;
let knots = [], home = [], threads = [], moves = 0, held = -1;

const side = (a, b, c) => Math.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]));
function cross(points, [a, b], [c, d]) {
  if (a === c || a === d || b === c || b === d) return false;
  const [p, q, r, s] = [a, b, c, d].map((n) => points[n]);
  return side(p, q, r) !== side(p, q, s) && side(r, s, p) !== side(r, s, q);
}
function crossings(points) {
  let count = 0;
  threads.forEach((one, n) => threads.slice(n + 1).forEach((two) => (count += cross(points, one, two))));
  return count;
}

function begin(chance, { knots: count = 8, tangled = 6 }) {
  moves = 0;
  held = -1;
  do {
    home = [];
    while (home.length < count) {
      const point = [50 + chance.int(340), 50 + chance.int(340)];
      if (home.every(([x, y]) => Math.hypot(x - point[0], y - point[1]) > 88)) home.push(point);
    }
    // Short threads first, each only if it crosses none: a picture without crossings exists.
    const pairs = [];
    for (let a = 0; a < count; a++) for (let b = a + 1; b < count; b++) pairs.push([a, b]);
    const long = ([a, b]) => Math.hypot(home[a][0] - home[b][0], home[a][1] - home[b][1]);
    threads = [];
    for (const pair of pairs.sort((p, q) => long(p) - long(q))) {
      if (threads.length < 12 && threads.every((other) => !cross(home, pair, other))) threads.push(pair);
    }
    const places = chance.shuffle([...home.keys()]);
    knots = places.map((n) => [
      Math.round(220 + 165 * Math.cos((2 * Math.PI * n) / count)),
      Math.round(220 + 165 * Math.sin((2 * Math.PI * n) / count)),
    ]);
  } while (crossings(knots) < tangled);
  draw();
}

function draw() {
  empty(board());
  const svg = make("svg", { viewBox: "0 0 440 440", width: 440, height: 440 }, board());
  const left = crossings(knots);
  threads.forEach(([a, b], n) => {
    const crossed = threads.some((other) => cross(knots, [a, b], other));
    make("line", { x1: knots[a][0], y1: knots[a][1], x2: knots[b][0], y2: knots[b][1],
      stroke: crossed ? COLOURS[n % COLOURS.length] : "#a9b4bb", "stroke-width": 5, "stroke-linecap": "round" }, svg);
  });
  knots.forEach(([x, y], n) => {
    make("circle", { at: `knot-${n}`, cx: x, cy: y, r: n === held ? 19 : 16, fill: "#fff", stroke: "#22303c", "stroke-width": 4 }, svg);
    make("circle", { cx: x, cy: y, r: 6, fill: "#22303c" }, svg);
  });
  const end = !left && held < 0;
  show({ Crossings: left, Moves: moves }, end ? "Untangled" : "Drag the knots; grey threads cross nothing", end ? "won" : "");
}

const inside = (n) => Math.max(18, Math.min(422, Math.round(n)));
follow(board(), {
  down(x, y) {
    if (!crossings(knots)) return false;
    const far = knots.map(([a, b]) => Math.hypot(a - x, b - y)), nearest = Math.min(...far);
    held = nearest < REACH ? far.indexOf(nearest) : -1;
    return held >= 0;
  },
  move(x, y) {
    knots[held] = [inside(x), inside(y)];
    draw();
  },
  up(x, y) {
    knots[held] = [inside(x), inside(y)];
    held = -1;
    moves++;
    draw();
  },
});

publish({
  name: "yarn-untangle", version: "1", begin,
  state: () => ({ knots, threads, home, moves, held }),
  more() {
    const box = board().getBoundingClientRect();
    return Object.fromEntries(home.map(([x, y], n) => [`home-${n}`, [box.left + x, box.top + y]]));
  },
});
