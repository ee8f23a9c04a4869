// Draws where actions aim, in pixels of the frame, over a live desktop or a screenshot.

import { points } from "./commands.js";

const NS = "http://www.w3.org/2000/svg";

function shape(name, attributes, text) {
  const node = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

/**
 * Replace what `svg` shows by `marks`: [{action, label, kind}].
 * `kind` is the class ("c1"…"c5", "edit"); `chosen` among them is drawn strong.
 */
export function draw(svg, marks) {
  svg.replaceChildren(arrowHead());
  // Rings and numbers keep their size on the page however small the picture is shown.
  const ratio = svg.viewBox.baseVal.width / (svg.clientWidth || 1280);
  const unit = Math.min(2.2, ratio < 1 ? ratio : Math.max(1, ratio / 1.35));
  const taken = [];
  for (const mark of marks) {
    const group = shape("g", { class: `mark ${mark.kind}${mark.chosen ? " chosen" : ""}` });
    const where = points(mark.action);
    if (where.length) at(group, mark, where, spread(taken, where[0]), unit);
    else if (mark.action) aside(group, mark, svg, taken, unit);
    svg.append(group);
  }
}

/** Candidates on one place get their numbers side by side. */
function spread(taken, [x, y]) {
  const same = taken.filter(([a, b]) => Math.hypot(a - x, b - y) < 12).length;
  taken.push([x, y]);
  return same;
}

function at(group, mark, where, shift, unit) {
  const [x, y] = where[0];
  if (where.length > 1) {
    group.append(shape("polyline", { points: where.map((p) => p.join(",")).join(" "), class: "path", "marker-end": "url(#head)" }));
  }
  if (mark.action.type === "scroll") {
    const [dx, dy] = [Math.sign(mark.action.dx || 0) * 36 * unit, Math.sign(mark.action.dy || 0) * 36 * unit];
    group.append(shape("line", { x1: x, y1: y, x2: x + dx, y2: y + dy, class: "path", "marker-end": "url(#head)" }));
  }
  const target = shape("g", { transform: `translate(${x} ${y}) scale(${unit})` });
  target.append(shape("circle", { r: 15, class: "halo" }), shape("circle", { r: 14, class: "ring" }), shape("circle", { r: 2.2, class: "dot" }));
  if (mark.action.count > 1) target.append(shape("circle", { r: 9, class: "ring thin" }));
  badge(target, mark.label, 13 + shift * 26, -13);
  group.append(target);
}

/** An action without a place (type, hotkey, wait …) is written at the lower edge. */
function aside(group, mark, svg, taken, unit) {
  const row = taken.filter(([x]) => x < 0).length;
  taken.push([-1000 - row * 100, 0]);
  const line = shape("g", { transform: `translate(${24 * unit} ${svg.viewBox.baseVal.height - (22 + row * 30) * unit}) scale(${unit})` });
  badge(line, mark.label, 0, 0);
  const text = mark.text.length > 60 ? `${mark.text.slice(0, 59)}…` : mark.text;
  line.append(shape("text", { x: 20, y: 5, class: "words" }, text));
  group.append(line);
}

function badge(group, label, x, y) {
  if (!label) return;
  group.append(shape("circle", { cx: x, cy: y, r: 11, class: "badge-fill" }));
  group.append(shape("text", { x, y: y + 4.5, class: "badge-text" }, label));
}

function arrowHead() {
  const defs = shape("defs", {});
  const head = shape("marker", { id: "head", viewBox: "0 0 10 10", refX: 8, refY: 5, markerWidth: 5, markerHeight: 5, orient: "auto-start-reverse" });
  head.append(shape("path", { d: "M0 0 10 5 0 10z", fill: "context-stroke" }));
  defs.append(head);
  return defs;
}

/** Return the pixel of the frame under a pointer event, or null outside. */
export function pixel(svg, event) {
  const box = svg.getBoundingClientRect();
  const { width, height } = svg.viewBox.baseVal;
  const x = Math.floor(((event.clientX - box.left) * width) / box.width);
  const y = Math.floor(((event.clientY - box.top) * height) / box.height);
  return x >= 0 && y >= 0 && x < width && y < height ? [x, y] : null;
}

/** Let the person pick a place (or a line, by dragging) until the returned function is called. */
export function picker(svg, onPick) {
  let from = null;
  const down = (event) => {
    from = pixel(svg, event);
    svg.setPointerCapture(event.pointerId);
    event.preventDefault();
  };
  const up = (event) => {
    const to = pixel(svg, event);
    if (from && to) onPick(Math.hypot(from[0] - to[0], from[1] - to[1]) > 8 ? [from, to] : [to]);
    from = null;
  };
  svg.classList.add("picking");
  svg.addEventListener("pointerdown", down);
  svg.addEventListener("pointerup", up);
  return () => {
    svg.classList.remove("picking");
    svg.removeEventListener("pointerdown", down);
    svg.removeEventListener("pointerup", up);
  };
}

/** Make `button` start and stop a pick over `svg`; one pick ends it. Returns {toggle, stop}. */
export function pickButton(button, svg, onPick) {
  let end = null;
  const stop = () => {
    end?.();
    end = null;
    button.setAttribute("aria-pressed", "false");
  };
  const toggle = () => {
    if (end) return stop();
    end = picker(svg, (places) => { onPick(places); stop(); });
    button.setAttribute("aria-pressed", "true");
  };
  button.addEventListener("click", toggle);
  return { toggle, stop };
}
