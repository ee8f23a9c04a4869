(state) => ({
  score: state.score, level: null, lives: null, done: state.left === 0, won: state.left === 0,
})
