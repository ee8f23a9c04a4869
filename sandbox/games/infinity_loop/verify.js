// Counts the open ends itself: the page's own opinion does not matter.
(state) => {
  const { columns, rows, tiles } = state;
  const at = (x, y) => (x < 0 || y < 0 || x >= columns || y >= rows ? 0 : tiles[y * columns + x]);
  let open = 0;
  for (let y = 0; y < rows; y++) {
    for (let x = 0; x < columns; x++) {
      const bits = at(x, y);
      if (bits & 1 && !(at(x, y - 1) & 4)) open++;
      if (bits & 2 && !(at(x + 1, y) & 8)) open++;
      if (bits & 4 && !(at(x, y + 1) & 1)) open++;
      if (bits & 8 && !(at(x - 1, y) & 2)) open++;
    }
  }
  const won = open === 0;
  return { score: won ? 1 : 0, level: null, lives: null, done: won, won };
}
