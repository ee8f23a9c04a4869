// Puts the element on the page and reads its engine. A long press would depend on real time: off.
"use strict";

const element = document.createElement("minesweeper-game");
element.setAttribute("long-press-threshold", "0");
element.setAttribute("disable-question-marks", "");
element.setAttribute("bomb-counter-selector", "#left");

host({
  version: "minesweeper-for-web 3.0.4",
  begin: () => document.body.append(element),
  state() {
    const { positions, revealedFields, flags } = element.engine.board;
    return { fields: positions, open: revealedFields, flags, over: element.engine.isGameOver };
  },
  more() {
    const found = {};
    for (const field of element.shadowRoot.querySelectorAll("[data-row]")) {
      const box = field.getBoundingClientRect();
      found[`field-${field.dataset.row}-${field.dataset.column}`] = [
        box.left + box.width / 2, box.top + box.height / 2,
      ];
    }
    return found;
  },
});
