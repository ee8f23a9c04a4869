// For games that others wrote and that stay as they are. Loaded after game.js and before their scripts,
// it seeds every random number and forgets what an earlier round stored; `host` publishes the game.
"use strict";

const hostedSeed = Number(new URLSearchParams(location.search).get("seed") || 0);
const seedChance = () => {
  Math.random = seeded(hostedSeed, document.title).next;
};
seedChance();
localStorage.clear();

// begin() sets the game going, once: such a page is opened anew for each round (`reload`).
function host({ version, begin = () => {}, state, more = () => ({}) }) {
  let begun = false;
  window.tandemGame = Object.freeze({
    version,
    start(seed) {
      if (begun || seed !== hostedSeed) return false;
      begun = true;
      // What was drawn while the page loaded must not show in the round.
      seedChance();
      begin();
      return true;
    },
    state: () => JSON.parse(JSON.stringify({ seed: hostedSeed, ...state() })),
    places: () => more(),
  });
}
