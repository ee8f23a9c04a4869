(state) => {
  const won = state.place === state.goal && state.goal === state.side ** 2 - 1;
  return { score: won ? 1 : 0, level: null, lives: null, done: won, won };
}
