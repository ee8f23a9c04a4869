(state) => {
  const home = state.boxes.filter((cell) => state.marks.includes(cell)).length;
  const won = home === state.marks.length;
  return { score: home, level: null, lives: null, done: won, won };
}
