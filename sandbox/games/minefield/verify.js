(state) => {
  const hit = state.mines.some((mine, cell) => mine && state.open[cell]);
  const won = !hit && state.mines.every((mine, cell) => mine || state.open[cell]);
  const score = state.open.filter((shown, cell) => shown && !state.mines[cell]).length;
  return { score, level: null, lives: hit ? 0 : 1, done: hit || won, won };
}
