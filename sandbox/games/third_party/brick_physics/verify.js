(state) => ({ score: state.score, level: null, lives: null, done: state.over, won: false })
