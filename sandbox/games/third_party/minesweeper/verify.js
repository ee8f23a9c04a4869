// Counts open fields itself; a field that blew up is the only one that the engine calls BOMB_EXPLODE.
(state) => {
  let safe = 0, open = 0, blown = false;
  state.fields.forEach((row, y) => row.forEach((field, x) => {
    if (field === "BOMB_EXPLODE") blown = true;
    if (typeof field !== "number") return;
    safe++;
    if (state.open[y][x] && !state.flags[y][x]) open++;
  }));
  const won = !blown && open === safe;
  return { score: Math.round((100 * open) / safe), level: null, lives: null, done: blown || won, won };
}
