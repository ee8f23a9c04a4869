(state) => {
  const done = state.now >= state.length || state.crashed;
  return { score: state.passed, level: null, lives: state.crashed ? 0 : 1, done, won: done && !state.crashed };
}
