// Reads the balls of the world, and says where they are on the page.
"use strict";

hold();

const balls = () => bodies((body) => {
  if (!body.isDynamic()) return null;
  const { x, y } = body.getPosition();
  return { colour: body.render.fill, x, y, speed: body.getLinearVelocity().length() };
});

// Metres of the world to pixels of the page; the table is in the middle of the canvas.
function pixel(x, y) {
  const box = document.getElementById("stage").getBoundingClientRect();
  const scale = Math.min(box.width / bench.width, box.height / bench.height);
  return [box.left + box.width / 2 + x * scale, box.top + box.height / 2 - y * scale];
}

host({
  version: "planck-js 0.3.31",
  begin: release,
  state: () => ({ balls: balls(), table: { width: 8, height: 4 } }),
  more() {
    const white = balls().find((ball) => ball.colour === "white");
    const places = { corner: pixel(-4, 2), middle: pixel(0, 0), edge: pixel(1, 0) };
    return white ? { ...places, white: pixel(white.x, white.y) } : places;
  },
});
