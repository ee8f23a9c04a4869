// The package starts when its playground appears. It knows no score and begins anew at a crash, so
// passed pillars and crashes are counted here, from outside.
"use strict";

const GAP = 50;
let passed = 0, crashes = 0;

function count() {
  const reset = canvas.onClear;
  canvas.onClear = () => {
    crashes++;
    reset();
    count();
  };
  const remove = canvas.removeObstacle.bind(canvas);
  let removed = 0;
  canvas.removeObstacle = (id) => {
    remove(id);
    removed++;
    if (crashes === 0 && removed % 2 === 0) passed++;
  };
}

host({
  version: "mr-flap 1.3.0",
  begin() {
    const frame = make("div", {}, document.body);
    make("div", { class: "mrflap-playground" }, frame);
    queueMicrotask(count);
  },
  state: () => ({
    passed, crashes, gap: GAP, height: canvas.height,
    bird: { x: bird.x, y: bird.y, size: bird.height },
    pillars: canvas.obstacles.map(({ shape }) => ({
      x: shape.x, y: shape.y, width: shape.width, height: shape.height,
    })),
  }),
});
