// For the games of planck.js's testbed. Loaded before the package, it draws one picture and then holds
// the game until the round begins, whatever the clock did before.
"use strict";

const held = [];
let bench = null, world = null, holding = true;

// The stage starts by a timer of 0 ms, which a clock at rest would never run.
const timer = window.setTimeout, frame = window.requestAnimationFrame;
window.addEventListener("load", () => {
  window.setTimeout = (then, delay, ...rest) => (delay === 0 ? queueMicrotask(then) : timer(then, delay, ...rest));
  window.requestAnimationFrame = (then) => {
    if (!holding) return frame(then);
    held.push(then);
    return 0;
  };
});

// Take the example's own set-up; `seen` gets the testbed before it runs. Called behind the package.
function hold(seen = () => {}) {
  window.addEventListener("load", () => {
    window.setTimeout = timer;
    // The stage takes at most 33 ms for a frame, so that all rounds go on alike from long ago.
    for (let pictures = 0; pictures < 2; pictures++) held.splice(0).forEach((then) => then(-1000));
  });
  const testbed = planck.testbed;
  planck.testbed = (name, setup) => testbed(name, (given) => {
    bench = given;
    seen(given);
    world = setup(given);
    return world;
  });
}

function release() {
  holding = false;
  held.forEach((then) => frame(then));
}

// What `read` gives for each body that it does not give null for.
function bodies(read) {
  const found = [];
  for (let body = world.getBodyList(); body; body = body.getNext()) {
    const one = read(body);
    if (one) found.push(one);
  }
  return found;
}
