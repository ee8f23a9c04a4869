// Games in which pieces are dragged from a tray of three onto a board, and full lines vanish.
"use strict";

// `cells`: [x, y] of the grid each; `middle(x, y)`: pixels from the board's origin; `lines`: lists of
// cell numbers; `pieces`: lists of offsets from the first cell; `paint(parent, x, y, scale, fill, lit)`
// draws one cell. An episode is `most` pieces long, or ends when no piece of the tray fits.
function placing({ name, version, cells, middle, lines, pieces, paint, most, origin, hint }) {
  const COLOURS = ["#1f7a8c", "#e4572e", "#7d5ba6", "#3f9b6b", "#c98a1b", "#3d6fb6", "#d6538a"];
  const SMALL = 0.44, GAP = 147;
  const index = new Map(cells.map(([x, y], n) => [`${x},${y}`, n]));
  let full = [], tray = [], score = 0, placed = 0, held = null, chance = null, over = false;

  const shelf = () => document.getElementById("tray");
  const covered = (piece, cell) => piece.cells.map(([x, y]) => index.get(`${cells[cell][0] + x},${cells[cell][1] + y}`));
  const fits = (piece, cell) => covered(piece, cell).every((n) => n !== undefined && full[n] === null);
  const spots = (piece) => cells.map((_, cell) => cell).filter((cell) => fits(piece, cell));
  // The middle of a piece in pixels, measured from the middle of its first cell.
  const centre = (piece) => {
    const at = piece.cells.map(([x, y]) => middle(x, y));
    const half = (n) => (Math.min(...at.map((p) => p[n])) + Math.max(...at.map((p) => p[n]))) / 2;
    const [zx, zy] = middle(0, 0);
    return [half(0) - zx, half(1) - zy];
  };

  function deal() {
    tray = [0, 1, 2].map(() => {
      const kind = chance.int(pieces.length);
      return { cells: pieces[kind], colour: COLOURS[kind % COLOURS.length] };
    });
  }

  function begin(random) {
    chance = random;
    full = cells.map(() => null);
    score = placed = 0;
    held = null;
    over = false;
    deal();
    draw();
  }

  function place(slot, cell) {
    const piece = tray[slot];
    for (const n of covered(piece, cell)) full[n] = piece.colour;
    const done = lines.filter((line) => line.every((n) => full[n] !== null));
    for (const line of done) for (const n of line) full[n] = null;
    score += piece.cells.length + 10 * done.length * done.length;
    placed++;
    tray[slot] = null;
    if (tray.every((one) => one === null)) deal();
    over = placed >= most || !tray.some((one) => one && spots(one).length);
  }

  // The cell on which the first cell of the held piece would land: the nearest, within half a cell.
  function landing(piece, x, y) {
    const [cx, cy] = centre(piece), [ox, oy] = origin;
    const reach = Math.abs(middle(1, 0)[0] - middle(0, 0)[0]) * 0.6;
    let best = null;
    for (const cell of spots(piece)) {
      const [mx, my] = middle(...cells[cell]);
      const far = Math.hypot(ox + mx + cx - x, oy + my + cy - y);
      if (far < reach && (!best || far < best[1])) best = [cell, far];
    }
    return best && best[0];
  }

  function draw() {
    empty(board());
    empty(shelf());
    const [ox, oy] = origin;
    const svg = make("svg", { viewBox: "0 0 440 440", width: 440, height: 440 }, board());
    const target = held ? landing(held.piece, ...held.at) : null;
    const lit = new Set(target === null ? [] : covered(held.piece, target));
    cells.forEach(([x, y], n) => {
      const [mx, my] = middle(x, y);
      paint(svg, ox + mx, oy + my, 1, lit.has(n) ? "#cfd8dc" : full[n] || "#f1eee6");
    });
    tray.forEach((piece, slot) => {
      if (!piece || (held && held.slot === slot)) return;
      const button = make("button", { at: `piece-${slot}`, box: [slot * GAP, 0, GAP - 1, 92],
        "aria-label": `piece ${slot + 1}`, style: { background: "#fff", border: "1px solid #e2ddd2" } }, shelf());
      const small = make("svg", { viewBox: "0 0 146 90", width: 146, height: 90 }, button);
      sketch(small, piece, 72, 45, SMALL);
    });
    if (held) {
      const float = make("svg", { viewBox: "0 0 440 440", width: 440, height: 440 }, board());
      sketch(float, held.piece, ...held.at, 1);
    }
    const left = most - placed;
    show({ Score: score, Pieces: left }, over ? (left ? "No piece fits any more" : "All pieces placed") : hint, over ? (left ? "lost" : "won") : "");
  }

  function sketch(parent, piece, x, y, scale) {
    const [cx, cy] = centre(piece), [zx, zy] = middle(0, 0);
    for (const [a, b] of piece.cells) {
      const [mx, my] = middle(a, b);
      paint(parent, x + (mx - zx - cx) * scale, y + (my - zy - cy) * scale, scale, piece.colour);
    }
  }

  const onBoard = (x, y) => {
    const area = shelf().getBoundingClientRect(), box = board().getBoundingClientRect();
    return [x + area.left - box.left, y + area.top - box.top];
  };
  follow(shelf(), {
    down(x, y) {
      const slot = Math.floor(x / GAP);
      if (over || !tray[slot]) return false;
      held = { slot, piece: tray[slot], at: onBoard(x, y) };
      return true;
    },
    move(x, y) {
      held.at = onBoard(x, y);
      draw();
    },
    up(x, y) {
      const cell = landing(held.piece, ...onBoard(x, y)), { slot } = held;
      held = null;
      if (cell !== null) place(slot, cell);
      draw();
    },
  });

  publish({
    name, version, begin,
    state: () => ({
      cells, lines, full: full.map((n) => n !== null), tray: tray.map((piece) => piece && piece.cells),
      score, placed, most, over,
    }),
    // Where to let a piece go so that it lands on a cell.
    more() {
      const box = board().getBoundingClientRect(), found = {};
      tray.forEach((piece, slot) => {
        if (!piece) return;
        const [cx, cy] = centre(piece);
        for (const cell of spots(piece)) {
          const [mx, my] = middle(...cells[cell]);
          found[`drop-${slot}-${cell}`] = [box.left + origin[0] + mx + cx, box.top + origin[1] + my + cy];
        }
      });
      return found;
    },
  });
}
