// Follows the beam itself.
(state) => {
  const { side, cells, source, target } = state;
  let x = 0, y = source, dx = 1, dy = 0, won = false;
  for (let n = 0; n < 4 * side * side && x >= 0 && y >= 0 && x < side && y < side; n++) {
    const cell = y * side + x;
    if (cell === target) won = cells[cell] === "o";
    if (cell === target || cells[cell] === "#") break;
    if (cells[cell] === "/") [dx, dy] = [-dy, -dx];
    if (cells[cell] === "\\") [dx, dy] = [dy, dx];
    x += dx;
    y += dy;
  }
  return { score: won ? 1 : 0, level: null, lives: null, done: won, won };
}
