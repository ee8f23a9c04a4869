// What all our own games share: seeded chance, the frame around the board, and the one global that
// the outside may use, window.tandemGame = {version, start(seed, settings), state(), places()}.
"use strict";

// Chance by mulberry32; the same seed and name give the same numbers everywhere.
function seeded(seed, name) {
  let a = (Number(seed) ^ 0x9e3779b9) >>> 0;
  for (const letter of name) a = Math.imul(a ^ letter.charCodeAt(0), 0x01000193) >>> 0;
  const next = () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const int = (n) => Math.floor(next() * n);
  const shuffle = (list) => {
    const out = list.slice();
    for (let i = out.length - 1; i > 0; i--) {
      const j = int(i + 1);
      [out[i], out[j]] = [out[j], out[i]];
    }
    return out;
  };
  return { next, int, shuffle, pick: (list) => list[int(list.length)] };
}

// One new element; `attributes` may hold `text`, `at` (its name among the places) and `style` pairs.
function make(tag, attributes = {}, parent = null) {
  const svg = ["svg", "path", "circle", "rect", "line", "polygon", "g", "text", "polyline"];
  const element = svg.includes(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = value;
    else if (name === "at") element.dataset.at = value;
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "box") {
      const [left, top, width, height] = value.map((n) => `${n}px`);
      Object.assign(element.style, { left, top, width, height });
    } else element.setAttribute(name, value);
  }
  if (parent) parent.append(element);
  return element;
}

const board = () => document.getElementById("board");
const empty = (element) => element.replaceChildren();

// Header numbers and the line below the board; `end` is "", "won" or "lost".
function show(stats, hint, end = "") {
  const place = document.querySelector(".stats");
  empty(place);
  for (const [name, value] of Object.entries(stats)) {
    const box = make("div", { class: "stat" }, place);
    make("small", { text: name }, box);
    make("b", { text: String(value) }, box);
  }
  const footer = document.querySelector("footer");
  footer.className = end;
  footer.textContent = hint;
}

// Follow a pressed pointer over `area`; down(x, y) says whether to, in pixels of the area.
function follow(area, { down, move, up }) {
  let held = false;
  const at = (event) => {
    const box = area.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  area.addEventListener("pointerdown", (event) => {
    if (event.button === 0) held = down(...at(event), event) === true;
  });
  window.addEventListener("pointermove", (event) => held && move && move(...at(event)));
  window.addEventListener("pointerup", (event) => {
    if (!held) return;
    held = false;
    up(...at(event));
  });
}

// Publish the game: begin(chance, settings) sets it up, state() is plain data, more() adds places by name.
function publish({ name, version, begin, state, more = () => ({}) }) {
  let seed = 0;
  window.tandemGame = Object.freeze({
    version,
    start(number, settings = {}) {
      seed = number;
      begin(seeded(number, name), settings);
      return true;
    },
    state: () => JSON.parse(JSON.stringify({ seed, ...state() })),
    places() {
      const found = {};
      for (const element of document.querySelectorAll("[data-at]")) {
        const box = element.getBoundingClientRect();
        found[element.dataset.at] = [box.left + box.width / 2, box.top + box.height / 2];
      }
      return { ...found, ...more() };
    },
  });
  window.tandemGame.start(Number(new URLSearchParams(location.search).get("seed") || 0));
}
