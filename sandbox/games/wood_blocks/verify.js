// The score is the page's; that no piece fits is found out here.
(state) => {
  const index = new Map(state.cells.map(([x, y], n) => [`${x},${y}`, n]));
  const free = (x, y) => state.full[index.get(`${x},${y}`)] === false;
  const fits = (piece) => state.cells.some(([x, y]) => piece.every(([dx, dy]) => free(x + dx, y + dy)));
  const done = state.placed >= state.most || !state.tray.some((piece) => piece && fits(piece));
  return { score: state.score, level: null, lives: null, done, won: state.placed >= state.most };
}
