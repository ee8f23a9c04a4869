// The beat of games that move by themselves: step() for every STEP_MS of the page's time, draw() for
// every DRAW_MS. What happens depends on the number of steps alone, never on how the frames fall. The
// time of one action is a multiple of DRAW_MS, so that the picture is of the same moment as the state.
"use strict";

const STEP_MS = 10, DRAW_MS = 50;

function beating({ step, draw }) {
  let started = performance.now(), done = 0;
  const frame = () => {
    // Half a millisecond of patience: a frame that is due at 250 ms may come at 249.999.
    const due = Math.floor((performance.now() - started + 0.5) / STEP_MS);
    const behind = Math.floor((due * STEP_MS) / DRAW_MS) > Math.floor((done * STEP_MS) / DRAW_MS);
    while (done < due) {
      done++;
      step();
    }
    if (behind) draw();
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  return () => {
    started = performance.now();
    done = 0;
  };
}
