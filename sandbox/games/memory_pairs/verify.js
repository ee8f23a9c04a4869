(state) => {
  const won = state.cards.length > 0 && state.found.every((one) => one === true);
  const lives = Math.max(0, state.spare - state.misses);
  return { score: state.found.filter(Boolean).length / 2, level: null, lives, done: won || lives === 0, won };
}
