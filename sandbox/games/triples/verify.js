(state) => {
  const won = state.row.length === 0 && state.tiles.every((tile) => tile.taken);
  const lost = state.row.length >= state.room;
  const score = (state.tiles.filter((tile) => tile.taken).length - state.row.length) / 3;
  return { score, level: null, lives: state.room - state.row.length, done: won || lost, won };
}
