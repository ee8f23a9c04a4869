// Counts the crossings itself; a knot that is still held is not placed yet.
(state) => {
  const side = (a, b, c) => Math.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]));
  const { knots, threads, held } = state;
  let crossings = 0;
  threads.forEach(([a, b], n) => threads.slice(n + 1).forEach(([c, d]) => {
    if (a === c || a === d || b === c || b === d) return;
    const [p, q, r, s] = [a, b, c, d].map((knot) => knots[knot]);
    if (side(p, q, r) !== side(p, q, s) && side(r, s, p) !== side(r, s, q)) crossings++;
  }));
  const won = crossings === 0 && held < 0;
  return { score: won ? 1 : 0, level: null, lives: null, done: won, won };
}
