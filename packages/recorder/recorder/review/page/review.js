// The review of one recording: what is shown, what is selected, and the edits that are sent.

import { Picture } from "./picture.js";
import { Sound } from "./sound.js";
import { Timeline } from "./timeline.js";

const $ = (id) => document.getElementById(id);
const clock = (s) => `${Math.floor(s / 60)}:${(s % 60).toFixed(1).padStart(4, "0")}`;

const made = (tag, className = "", text = "") => {
  const node = document.createElement(tag);
  node.className = className;
  node.textContent = text;
  return node;
};

const ask = async (path, body) => {
  const options = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(path, options);
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.message);
  return value;
};

export const says = (action) => {
  const { type, x, y, count, button, modifiers = [], text, keys, dx, dy, path, duration_ms: ms } = action;
  const held = modifiers.map((key) => `${key}+`).join("");
  switch (type) {
    case "click": return `${held}${["", "Click", "Double click", "Triple click"][count]}${button === "left" ? "" : ` (${button})`} at ${x}, ${y}`;
    case "type": return `Type “${text}”`;
    case "hotkey": return `Press ${keys.join("+")}`;
    case "scroll": return `Scroll ${dy > 0 ? "down" : dy < 0 ? "up" : dx > 0 ? "right" : "left"} ${Math.abs(dy || dx)}`;
    case "drag": return `Drag from ${path[0].join(", ")} to ${path.at(-1).join(", ")}`;
    case "long_press": return `Hold for ${(ms / 1000).toFixed(1)} s at ${x}, ${y}`;
    case "wait": return `Wait ${(ms / 1000).toFixed(1)} s`;
    case "move": return `Rest at ${x}, ${y}`;
    case "key_down": return `Hold ${action.key}`;
    case "key_up": return `Let go of ${action.key}`;
    default: return type;
  }
};

const all = await ask("contents");
const reads = () => all.pictures.state === "reading";
const state = { t: 0, step: -1, from: null, to: null, edits: all.edits };
const picture = new Picture(all, $("picture"), blur);
const sound = new Sound(all, (t) => go(t, { playing: true }));
const timeline = new Timeline(all, $("timeline"), {
  seek: (t) => { sound.stop(); go(t); },
  select: (from, to) => { state.from = from; state.to = to; draw(); },
});

function go(t, { step = null, playing = false } = {}) {
  state.t = Math.max(0, Math.min(all.duration, t));
  const before = all.steps.findLastIndex((s) => s.began <= state.t + 0.001);
  state.step = step ?? before;
  if (playing && state.t >= all.duration) sound.stop();
  draw();
}

const deleted = () => new Set(state.edits.filter((e) => e.op === "delete").map((e) => all.steps[e.index].began));
const isCut = (t) => state.edits.some((e) => e.op === "cut" && e.began <= t && t <= e.ended);

async function edit(body) {
  try {
    ({ edits: state.edits } = await ask(body === "undo" ? "undo" : "edit", body === "undo" ? {} : body));
    listWords();
    draw();
  } catch (error) { toast(error.message); }
}

function blur(box, shown) {
  const later = all.frames.findIndex((f) => f.t > shown.t);
  const until = later < 0 ? all.duration : all.frames[later].t - 0.001;
  edit({ op: "blur", began: shown.t, ended: picture.sticky ? all.duration : until, box });
}

function toast(text) {
  $("toast").textContent = text;
  $("toast").hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => { $("toast").hidden = true; }, 4000);
}

function listSteps() {
  $("steps").replaceChildren(...all.steps.map((step, n) => {
    const item = made("li"), button = made("button"), what = made("span", "what", says(step.action));
    const { element, window } = step;
    what.append(made("span", "where", [element?.name || element?.role, window.app, clock(step.began)].filter(Boolean).join(" · ")));
    button.append(made("span", "n", n + 1), what);
    button.addEventListener("click", () => { sound.stop(); go(step.began, { step: n }); });
    item.append(button);
    return item;
  }));
  if (!all.steps.length) $("steps").append(made("li", "muted", "No step is left."));
}

function listWords() {
  const texts = new Map(state.edits.filter((e) => e.op === "words").map((e) => [e.index, e.text]));
  const lines = all.words.map((word, index) => ({ ...word, index, edited: texts.get(index) }));
  lines.push(...state.edits.filter((e) => e.op === "say").map((e) => ({ ...e, by: "person" })));
  lines.sort((a, b) => a.began - b.began);
  $("words").replaceChildren(...lines.map((line) => {
    const row = made("div", "line"), time = made("time", "", clock(line.began)), text = made("span", "text", line.edited ?? line.text);
    Object.assign(row.dataset, { began: line.began, ended: line.ended });
    time.addEventListener("click", () => { sound.stop(); go(line.began); });
    text.classList.toggle("unsure", line.by === "asr" && line.confidence < 0.6 && line.edited === undefined);
    text.classList.toggle("person", line.by === "person" || line.edited !== undefined);
    if (line.edited === "") { text.textContent = line.text; text.classList.add("gone"); }
    if (line.index !== undefined) {
      text.contentEditable = "plaintext-only";
      text.setAttribute("role", "textbox");
      text.setAttribute("aria-label", `Said at ${clock(line.began)}`);
      text.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); text.blur(); } });
      text.addEventListener("blur", () => {
        const now = text.textContent.trim();
        if (now !== (line.edited ?? line.text)) edit({ op: "words", index: line.index, text: now });
      });
    }
    row.append(time, text);
    return row;
  }));
  if (!lines.length) $("words").append(made("p", "empty", all.audio.length ? "There is no transcript yet: it is made after the upload, from the sound as you leave it here." : "No sound was recorded."));
}

function listRemoved() {
  const whole = all.redactions.filter((r) => r.streams.includes("input") || r.streams.includes("words"));
  const read = all.redactions.filter((r) => r.cause.endsWith(" on a picture")).length;
  const painted = all.redactions.length - whole.length - read;
  $("removed").replaceChildren(...whole.map((r) => {
    const item = made("li"), time = made("time", "", clock(r.began));
    item.append(time, made("span", "", r.cause));
    return item;
  }));
  if (read) $("removed").append(made("li", "muted", `${read} read on pictures and painted over`));
  if (painted) $("removed").append(made("li", "muted", `${painted} more painted over on pictures`));
  if (!all.redactions.length) $("removed").append(made("li", "empty", "Nothing had to be removed."));
}

function listLooking() {
  const { state, done, of } = all.pictures;
  const unread = state === "unread" && all.frames.length > 0;
  $("looking").hidden = !(reads() && of) && !unread;
  $("looking").classList.toggle("unread", unread);
  $("looked-through").hidden = unread;
  Object.assign($("looked-through"), { max: Math.max(1, of), value: done });
  $("looking-at").textContent = unread ? `Nobody has read your pictures: look at each one yourself. ${all.pictures.cause[0].toUpperCase()}${all.pictures.cause.slice(1)}`
    : `Looking through picture ${Math.min(done + 1, of)} of ${of} for secrets that are only shown. Review meanwhile; you can confirm when this is done.`;
  $("confirm").disabled = reads();
  $("confirm").title = reads() ? "The pictures are still looked through" : "";
}

async function watchLooking() {
  while (reads()) {
    await new Promise((done) => setTimeout(done, 700));
    try {
      all.pictures = await ask("progress");
    } catch { continue; } // the review's program was stopped, or starts anew
    if (!reads()) {
      const { redactions } = await ask("contents");
      all.redactions = redactions;
      picture.again();
      listRemoved();
      draw();
    }
    listLooking();
  }
}

function draw() {
  const gone = deleted(), step = all.steps[state.step];
  [...$("steps").querySelectorAll("button")].forEach((button, n) => {
    const current = n === state.step;
    if (current && !button.hasAttribute("aria-current")) button.scrollIntoView({ block: "nearest" });
    button.toggleAttribute("aria-current", current);
    button.querySelector(".what").classList.toggle("gone", gone.has(all.steps[n].began) || isCut(all.steps[n].began));
  });
  for (const line of $("words").querySelectorAll(".line")) {
    line.classList.toggle("now", line.dataset.began <= state.t && state.t <= line.dataset.ended);
  }
  const left = all.steps.filter((s) => !gone.has(s.began) && !isCut(s.began)).length;
  $("count").textContent = left === all.steps.length ? left : `${left} of ${all.steps.length}`;
  const onStep = step && Math.abs(step.began - state.t) < 0.002;
  picture.show(state.t, onStep ? step : null, state.edits);
  $("caption").textContent = onStep ? `${says(step.action)}, ${step.frame ? `seen ${step.frame_gap_ms} ms before` : "no picture from before it"}` : picture.caption;
  const chosen = state.from !== null && state.to > state.from;
  $("selected").textContent = chosen ? `${clock(state.from)} to ${clock(state.to)} selected` : "Drag on the time line to select a part.";
  $("cut").disabled = $("mute").disabled = !chosen;
  $("delete").disabled = !step || gone.has(step.began);
  $("undo").disabled = !state.edits.length;
  $("clock").textContent = `${clock(state.t)} / ${clock(all.duration)}`;
  $("play").firstChild.textContent = sound.playing ? "Pause " : "Play ";
  timeline.draw(state);
}

const part = (op) => {
  if (state.from === null || state.to <= state.from) return;
  edit({ op, began: state.from, ended: state.to });
  state.from = state.to = null;
};
const step = (by) => {
  const n = Math.max(0, Math.min(all.steps.length - 1, state.step + by));
  if (all.steps[n]) { sound.stop(); go(all.steps[n].began, { step: n }); }
};
const actions = {
  play: () => { sound.toggle(state.t); draw(); },
  undo: () => edit("undo"),
  cut: () => part("cut"),
  mute: () => part("mute"),
  before: () => edit({ op: "cut", began: 0, ended: state.t }),
  after: () => edit({ op: "cut", began: state.t, ended: all.duration + 60 }),
  delete: () => { if (all.steps[state.step]) edit({ op: "delete", index: state.step }); },
};
for (const [id, act] of Object.entries(actions)) $(id).addEventListener("click", act);

document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, [contenteditable]") || $("sure").open) return;
  const keys = { " ": actions.play, x: actions.cut, m: actions.mute, "[": actions.before, "]": actions.after, Delete: actions.delete, j: () => step(1), k: () => step(-1), ArrowDown: () => step(1), ArrowUp: () => step(-1), ArrowRight: () => go(state.t + 0.5), ArrowLeft: () => go(state.t - 0.5) };
  const act = event.ctrlKey || event.metaKey ? event.key === "z" && actions.undo : keys[event.key];
  if (!act || (event.key === " " && event.target.matches("button"))) return;
  event.preventDefault();
  act();
});

$("say").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = $("say-text").value.trim();
  if (text) await edit({ op: "say", began: state.t, ended: state.t + 0.5, text });
  $("say-text").value = "";
});

$("confirm").addEventListener("click", () => {
  $("summary").textContent = `${$("count").textContent} steps, ${all.frames.length} pictures and ${clock(all.audio.reduce((sum, a) => sum + a.seconds, 0))} of sound are made ready, with ${state.edits.length} of your edits. They are sent when you start the upload.`;
  $("heard-line").hidden = !all.unheard;
  $("looked-line").hidden = all.pictures.state !== "unread" || !all.frames.length;
  $("problem").textContent = "";
  $("sure").showModal();
});
$("not-yet").addEventListener("click", () => $("sure").close());
for (const id of ["heard", "looked"]) $(id).addEventListener("change", () => { $("problem").textContent = ""; });
$("really").addEventListener("click", async () => {
  $("really").disabled = true;
  try {
    await ask("confirm", { heard: $("heard").checked, looked: $("looked").checked });
    $("sure").close();
    document.querySelector(".local").textContent = "Confirmed: ready for upload";
    document.querySelector(".local").classList.add("left");
    toast("Confirmed. You may close this page.");
  } catch (error) { $("problem").textContent = error.message; }
  $("really").disabled = false;
});

$("title").textContent = all.task.title || "A recording of your own work";
$("instruction").textContent = all.task.instruction;
listSteps();
listWords();
listRemoved();
listLooking();
watchLooking();
go(all.steps[0]?.began ?? 0);
sound.peaks().then((peaks) => { timeline.peaks = peaks; draw(); });
new ResizeObserver(draw).observe($("stage"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
