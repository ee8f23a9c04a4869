// The end is judged from the tiles: no empty cell and no equal neighbours. A restart scores nothing.
(state) => {
  const at = (x, y) => (x < 4 && y < 4 ? state.cells[x][y] : -1);
  let moves = state.rounds === 0 ? 0 : -Infinity, best = 0;
  for (let x = 0; x < 4; x++) {
    for (let y = 0; y < 4; y++) {
      const value = at(x, y);
      best = Math.max(best, value);
      if (value === 0 || value === at(x + 1, y) || value === at(x, y + 1)) moves++;
    }
  }
  const won = state.rounds === 0 && best >= 2048;
  const done = won || moves <= 0;
  return { score: state.rounds === 0 ? state.score : 0, level: best, lives: null, done, won };
}
