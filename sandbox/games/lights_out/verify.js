(state) => {
  const won = state.lamps.length === state.side ** 2 && state.lamps.every((lamp) => lamp === 0);
  return { score: won ? 1 : 0, level: null, lives: null, done: won, won };
}
