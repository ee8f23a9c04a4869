(state) => {
  const done = state.turns >= state.most;
  return { score: state.score, level: null, lives: state.most - state.turns, done, won: false };
}
