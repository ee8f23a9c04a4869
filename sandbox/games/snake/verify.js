// The snake starts with three parts, and each bite adds one. Without food it fills the board.
(state) => ({
  score: state.snake.length - 3, level: null, lives: null, done: state.over, won: state.food === null,
})
