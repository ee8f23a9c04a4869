(state) => {
  const full = state.columns.every((column) => column.length >= state.rows);
  const all = state.drops >= state.most;
  return { score: state.score, level: Math.max(0, ...state.columns.flat()), lives: null, done: full || all, won: all };
}
