// Reads the score from the status line, and the rest from the bodies of the world.
"use strict";

let text = "", score = 0, over = false;

hold((given) => {
  given._status = (line, values) => {
    text = line;
    // The first game counts: another one can be started, but earns nothing.
    if (!over) score = values.Score || 0;
    over = over || line === "Gameover!";
    document.getElementById("status").textContent = `${line} Score: ${values.Score || 0}`;
  };
});

const all = (kind) => bodies((body) => {
  if (!body[kind]) return null;
  const { x, y } = body.getPosition(), speed = body.getLinearVelocity();
  return { x, y, vx: speed.x, vy: speed.y };
});

host({
  version: "planck-js 0.3.31",
  begin: release,
  state: () => ({
    text, score, over,
    left: !!bench.activeKeys.left, right: !!bench.activeKeys.right,
    balls: all("isBall"), bricks: all("isBrick"),
    drops: all("isDrop"), paddle: all("isPaddle")[0] || null,
  }),
});
