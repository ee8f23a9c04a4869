// Which piece fills the hole? Six rounds, three lives.
"use strict";

const ROUNDS = 6, LIVES = 3, GRID = 5, SIZE = 44;
const COLOURS = ["#1f7a8c", "#e4572e", "#7d5ba6", "#3f9b6b", "#c98a1b", "#3d6fb6"];
let rounds = [], round = 0, score = 0, lives = LIVES, said = "";

const code = (cells) => cells.map(([x, y]) => `${x}${y}`).sort().join(" ");
const home = (cells) => {
  const left = Math.min(...cells.map((c) => c[0])), top = Math.min(...cells.map((c) => c[1]));
  return cells.map(([x, y]) => [x - left, y - top]).sort((a, b) => a[1] - b[1] || a[0] - b[0]);
};

function grow(chance, size) {
  const cells = [[0, 0]];
  while (cells.length < size) {
    const [x, y] = chance.pick(cells), [dx, dy] = chance.pick([[1, 0], [-1, 0], [0, 1], [0, -1]]);
    const taken = cells.some(([a, b]) => a === x + dx && b === y + dy);
    const wide = (n, value) => [...cells.map((c) => c[n]), value];
    const fits = [[0, x + dx], [1, y + dy]].every(([n, value]) =>
      Math.max(...wide(n, value)) - Math.min(...wide(n, value)) < 4);
    if (!taken && fits) cells.push([x + dx, y + dy]);
  }
  return home(cells);
}

// The wrong ones are the right one turned or mirrored, then others of the same size.
function challenge(chance, size) {
  const hole = grow(chance, size);
  const others = new Map();
  let cells = hole;
  for (let n = 0; n < 8; n++) {
    cells = home(cells.map(([x, y]) => (n === 3 ? [y, x] : [-y, x])));
    if (code(cells) !== code(hole)) others.set(code(cells), cells);
  }
  const wrong = chance.shuffle([...others.values()]).slice(0, 3);
  while (wrong.length < 5) {
    const piece = grow(chance, size);
    if (![hole, ...wrong].some((one) => code(one) === code(piece))) wrong.push(piece);
  }
  const width = Math.max(...hole.map((c) => c[0])) + 1, height = Math.max(...hole.map((c) => c[1])) + 1;
  const shift = [chance.int(GRID - width + 1), chance.int(GRID - height + 1)];
  return { hole: hole.map(([x, y]) => [x + shift[0], y + shift[1]]), choices: chance.shuffle([hole, ...wrong]) };
}

function begin(chance) {
  rounds = Array.from({ length: ROUNDS }, (_, n) => challenge(chance, 4 + Math.floor(n / 2)));
  round = score = 0;
  lives = LIVES;
  said = "Which piece fills the hole? Pieces are never turned";
  draw();
}

function press(choice) {
  if (round >= ROUNDS || lives <= 0) return;
  const right = code(rounds[round].choices[choice]) === code(home(rounds[round].hole));
  if (right) score++;
  else lives--;
  said = right ? "Right. And the next?" : "Wrong, a life is lost. And the next?";
  round++;
  draw();
}

function draw() {
  empty(board());
  const over = round >= ROUNDS || lives <= 0;
  const { hole, choices } = rounds[Math.min(round, ROUNDS - 1)];
  const svg = make("svg", { viewBox: "0 0 440 500", width: 440, height: 500 }, board());
  const left = (440 - GRID * SIZE) / 2;
  const missing = new Set(hole.map(String));
  for (let n = 0; n < GRID * GRID; n++) {
    const x = n % GRID, y = Math.floor(n / GRID);
    make("rect", { x: left + x * SIZE + 1, y: 14 + y * SIZE + 1, width: SIZE - 2, height: SIZE - 2, rx: 7,
      fill: missing.has(`${x},${y}`) ? "#efe9dc" : COLOURS[round % COLOURS.length] }, svg);
  }
  choices.forEach((cells, choice) => {
    const button = make("button", { at: `choice-${choice}`, "aria-label": `piece ${choice + 1}`,
      box: [16 + (choice % 3) * 138, 244 + Math.floor(choice / 3) * 126, 130, 118],
      style: { background: "#f7f5f0", border: "1px solid #e2ddd2" } }, board());
    button.onclick = () => press(choice);
    const picture = make("svg", { viewBox: "0 0 128 116", width: 128, height: 116 }, button);
    const width = Math.max(...cells.map((c) => c[0])) + 1, height = Math.max(...cells.map((c) => c[1])) + 1;
    for (const [x, y] of cells) {
      make("rect", { x: 64 + (x - width / 2) * 25 + 1, y: 58 + (y - height / 2) * 25 + 1, width: 23, height: 23, rx: 4,
        fill: COLOURS[round % COLOURS.length] }, picture);
    }
  });
  const hint = !over ? said : `${score} of ${ROUNDS} right`;
  show({ Round: `${Math.min(round + 1, ROUNDS)}/${ROUNDS}`, Right: score, Lives: lives }, hint, over ? (lives > 0 ? "won" : "lost") : "");
}

publish({
  name: "shapes", version: "1", begin,
  state: () => ({ rounds, round, score, lives }),
});
