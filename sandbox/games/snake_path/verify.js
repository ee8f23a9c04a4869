(state) => {
  const { side, free, body } = state;
  const joined = body.every((cell, n) => {
    if (n === 0) return free[cell];
    const before = body[n - 1];
    const far = Math.abs((cell % side) - (before % side)) + Math.abs(Math.floor(cell / side) - Math.floor(before / side));
    return free[cell] && far === 1;
  });
  const won = joined && new Set(body).size === body.length && body.length === free.filter(Boolean).length;
  return { score: won ? 1 : 0, level: null, lives: null, done: won, won };
}
