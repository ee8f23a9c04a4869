(state) => {
  const done = state.now >= state.length || state.lives <= 0;
  return { score: state.score, level: null, lives: state.lives, done, won: done && state.lives > 0 };
}
