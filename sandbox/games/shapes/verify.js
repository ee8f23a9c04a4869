(state) => {
  const done = state.round >= state.rounds.length || state.lives <= 0;
  return { score: state.score, level: state.round + 1, lives: state.lives, done, won: state.score === state.rounds.length };
}
