// Turn the mirrors until the beam reaches the target.
"use strict";

const SIDE = 6, SIZE = 68, EDGE = 16;
// Directions: 0 right, 1 down, 2 left, 3 up.
const STEP = [[1, 0], [0, 1], [-1, 0], [0, -1]];
// A "/" sends right up, a "\" sends right down.
const BOUNCE = { "/": [3, 2, 1, 0], "\\": [1, 0, 3, 2] };
let cells = [], source = 0, target = 0, moves = 0;

function trace(all, from) {
  const path = [];
  let x = 0, y = from, way = 0;
  while (x >= 0 && y >= 0 && x < SIDE && y < SIDE && path.length < 4 * SIDE * SIDE) {
    const cell = y * SIDE + x;
    path.push(cell);
    if (all[cell] === "o" || all[cell] === "#") break;
    if (all[cell] !== ".") way = BOUNCE[all[cell]][way];
    x += STEP[way][0];
    y += STEP[way][1];
  }
  return { path, out: [x, y] };
}

function begin(chance) {
  moves = 0;
  let end;
  do {
    cells = Array.from({ length: SIDE * SIDE }, () => {
      const n = chance.next();
      return n < 0.42 ? (chance.next() < 0.5 ? "/" : "\\") : n < 0.48 ? "#" : ".";
    });
    source = chance.int(SIDE);
    // The target goes where the beam of this picture ends inside; then all mirrors are turned by chance.
    const { path } = trace(cells, source);
    end = [...new Set(path)].filter((cell) => cells[cell] === ".").pop();
    const met = end === undefined ? [] : path.slice(0, path.indexOf(end)).filter((cell) => "/\\".includes(cells[cell]));
    if (new Set(met).size !== met.length || met.length < 4 || path.indexOf(end) !== path.lastIndexOf(end)) continue;
    target = end;
    cells[target] = "o";
    cells = cells.map((cell) => ("/\\".includes(cell) ? chance.pick(["/", "\\"]) : cell));
    if (far()) break;
  } while (true);
  draw();
}

const lit = () => trace(cells, source).path.includes(target);

// Whether no two turns are enough.
function far() {
  const mirrors = [...cells.keys()].filter((cell) => "/\\".includes(cells[cell]));
  const turned = (all, cell) => all.map((kind, n) => (n !== cell ? kind : kind === "/" ? "\\" : "/"));
  const reaches = (all) => trace(all, source).path.includes(target);
  if (reaches(cells)) return false;
  return mirrors.every((one, n) => {
    const once = turned(cells, one);
    return !reaches(once) && mirrors.slice(n + 1).every((two) => !reaches(turned(once, two)));
  });
}

function press(cell) {
  if (lit() || !"/\\".includes(cells[cell])) return;
  cells[cell] = cells[cell] === "/" ? "\\" : "/";
  moves++;
  draw();
}

function draw() {
  empty(board());
  const svg = make("svg", { viewBox: "0 0 440 440", width: 440, height: 440 }, board());
  const middle = (cell) => [EDGE + (cell % SIDE + 0.5) * SIZE, EDGE + (Math.floor(cell / SIDE) + 0.5) * SIZE];
  const won = lit();
  cells.forEach((kind, cell) => {
    const [x, y] = middle(cell);
    make("rect", { x: x - 31, y: y - 31, width: 62, height: 62, rx: 8, fill: kind === "#" ? "#7c8791" : "#f1eee6" }, svg);
    if (kind === "o") {
      make("circle", { cx: x, cy: y, r: 20, fill: won ? "#3f9b6b" : "#fff", stroke: "#3f9b6b", "stroke-width": 6 }, svg);
      make("circle", { cx: x, cy: y, r: 8, fill: won ? "#fff" : "#3f9b6b" }, svg);
    }
  });
  const { path, out } = trace(cells, source);
  const last = path[path.length - 1];
  const points = [[2, middle(source * SIDE)[1]], ...path.map(middle)];
  if (cells[last] !== "o" && cells[last] !== "#") points.push([EDGE + (out[0] + 0.5) * SIZE, EDGE + (out[1] + 0.5) * SIZE]);
  make("polyline", { points: points.join(" "), fill: "none", stroke: "#e4572e", "stroke-width": 5, "stroke-linejoin": "round", opacity: 0.9 }, svg);
  make("polygon", { points: `0,${middle(source * SIDE)[1] - 14} 20,${middle(source * SIDE)[1]} 0,${middle(source * SIDE)[1] + 14}`, fill: "#e4572e" }, svg);
  cells.forEach((kind, cell) => {
    if (!"/\\".includes(kind)) return;
    const [x, y] = middle(cell);
    const button = make("button", { at: `mirror-${cell}`, box: [x - 31, y - 31, 62, 62],
      "aria-label": `mirror row ${Math.floor(cell / SIDE) + 1} column ${cell % SIDE + 1}: ${kind === "/" ? "rising" : "falling"}` }, board());
    button.onclick = () => press(cell);
    const picture = make("svg", { viewBox: "0 0 62 62", width: 62, height: 62 }, button);
    make("path", { d: kind === "/" ? "M13,49 L49,13" : "M13,13 L49,49", stroke: "#3d6fb6", "stroke-width": 9, "stroke-linecap": "round" }, picture);
    make("path", { d: kind === "/" ? "M13,49 L49,13" : "M13,13 L49,49", stroke: "#cfe0f4", "stroke-width": 3, "stroke-linecap": "round" }, picture);
  });
  show({ Moves: moves }, won ? "The beam reaches the target" : "Click a mirror to turn it", won ? "won" : "");
}

publish({ name: "laser-mirror", version: "1", begin, state: () => ({ side: SIDE, cells, source, target, moves }) });
