// Fifteen balls and the white one lie on a full table.
(state) => {
  const white = state.balls.some((ball) => ball.colour === "white");
  const left = state.balls.filter((ball) => ball.colour !== "white").length;
  return { score: 15 - left, level: null, lives: null, done: !white || left === 0, won: white && left === 0 };
}
