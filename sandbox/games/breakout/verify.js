(state) => ({
  score: state.all - state.bricks.length, level: null, lives: state.lives,
  done: state.over, won: state.bricks.length === 0,
})
