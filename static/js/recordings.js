// The steps of a recording: what was done drawn on the picture, what was said to be heard, and for
// those who may, corrections: by typing, by a click on the picture, by keys. Ctrl+Z takes back.

import { readJson, toast } from "./api.js";
import { parse, points, usage, withPlace } from "./commands.js";
import { completion } from "./completion.js";
import { bindDialogs, bindKeys, confirmed, openDialog } from "./keys.js";
import { draw, picker } from "./overlay.js";
import { play, stop } from "./sounds.js";

const form = document.getElementById("corrections");
const steps = [...document.querySelectorAll("#steps > li")];
const actions = readJson("actions", {});
const pieces = readJson("heard", []);
// A recording that has not come whole, or could not be read, has no steps, and can be withdrawn all the same.
const store = `tandem.recording.${document.getElementById("steps")?.dataset.recording}`;
const judging = Boolean(form?.querySelector("[data-command]"));
let at = 0;

// -- what one looks at -----------------------------------------------------------------------------

function show(index) {
  if (!steps.length) return;
  select(Math.max(0, Math.min(index, steps.length - 1)));
  steps[at].scrollIntoView({ block: "start" });
  history.replaceState(null, "", `#${steps[at].id}`);
}

function select(index) {
  at = index;
  steps.forEach((step, i) => step.classList.toggle("current", i === at));
}

/** The recorded action in blue; its correction, if it can be read, in pink. */
function paint(step) {
  const svg = step.querySelector(".overlay");
  if (!svg) return;
  const number = String(steps.indexOf(step) + 1);
  const box = command(step);
  const recorded = actions[step.dataset.step];
  const text = box?.dataset.recorded ?? step.querySelector("code").textContent;
  const marks = [{ action: recorded, text, label: number, kind: "c1", chosen: true }];
  const action = box && box.value.trim() !== box.dataset.recorded ? read(box.value) : null;
  if (action) marks.push({ action, text: box.value, label: "✎", kind: "edit" });
  draw(svg, marks);
}

function read(text) {
  try { return parse(text); } catch { return null; }
}

const command = (step) => step.querySelector("[data-command]");
const thought = (step) => step.querySelector("[data-thought]");
const keep = (step) => step.querySelector("[data-keep]");

// -- changes, and taking them back -------------------------------------------------------------------

const changes = []; // of what was not typed: [undo, box, value after it]

function put(box, value) {
  const before = box.value;
  if (before === value) return;
  changes.push({ box, after: value, undo: () => fill(box, before) });
  fill(box, value);
}

function fill(box, value) {
  box.value = value;
  changed(box.closest("li"));
}

function setKept(step, kept) {
  keep(step).checked = kept;
  step.querySelector("[name^='kept-']").value = kept ? "1" : "0";
  step.classList.toggle("left-out", !kept);
  remember();
}

function toggleKept(step) {
  const kept = !keep(step).checked;
  changes.push({ undo: () => setKept(step, !kept) });
  setKept(step, kept);
}

/** Take back the last place, strike or step left out; typing is the box's own to take back. */
function undo(event) {
  if (!(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey || event.key.toLowerCase() !== "z") return;
  const last = changes.at(-1);
  const box = event.target.closest("input, textarea");
  if (!last || (box && (box !== last.box || box.value !== last.after))) return;
  event.preventDefault();
  changes.pop().undo();
}

function changed(step) {
  const box = command(step);
  if (box) validate(box);
  paint(step);
  remember();
}

/** Say under the box what is wrong. */
function validate(box, { quiet = false } = {}) {
  const error = document.getElementById(`wrong-${box.name.split("-")[1]}`);
  error.textContent = "";
  error.className = "error";
  box.removeAttribute("aria-invalid");
  if (box.value.trim() === box.dataset.recorded) return;
  try {
    parse(box.value);
  } catch (problem) {
    error.textContent = quiet ? usage(box.value) : problem.message;
    if (quiet) error.className = "help";
    else box.setAttribute("aria-invalid", "true");
  }
}

/** Put one or two picked places into the action of a step. */
function place(step, places) {
  const box = command(step);
  const action = read(box.value);
  select(steps.indexOf(step));
  if (action?.type === "drag") {
    const button = action.button === "left" ? [] : [action.button];
    put(box, `drag(${[...dragged(action.path, places).flat(), ...button].join(", ")})`);
  } else if (!box.value.trim() || points(action).length || /^\s*(click|move|scroll|long_press)\b/.test(box.value)) {
    put(box, withPlace(box.value, places.at(-1)));
  } else {
    toast(`This ${action?.type ?? "action"} has no place on the picture.`, "warning");
  }
}

/** A line is a new drag; a place moves the end of the old one that is nearer. */
function dragged(path, places) {
  if (places.length > 1) return places;
  const [place] = places;
  const far = ([x, y]) => Math.hypot(x - place[0], y - place[1]);
  return far(path[0]) < far(path.at(-1)) ? [place, ...path.slice(1)] : [...path.slice(0, -1), place];
}

/** What was typed survives a reload: kept in this browser until it is sent. */
function remember() {
  if (!form) return;
  const names = /^(thought|command|kept|reasons)/;
  const typed = [...new FormData(form)].filter(([name, value]) => names.test(name) && value !== original(form.elements[name]));
  localStorage.setItem(store, JSON.stringify(Object.fromEntries(typed)));
}

/** What the page came with; a hidden field forgets that, its box does not. */
function original(field) {
  if (field.type !== "hidden") return field.defaultValue;
  return keep(field.closest("li")).defaultChecked ? "1" : "0";
}

function recall() {
  for (const [name, value] of Object.entries(JSON.parse(localStorage.getItem(store) ?? "{}"))) {
    const field = form.elements[name];
    if (!field) continue;
    if (name.startsWith("kept-")) setKept(field.closest("li"), value === "1");
    else field.value = value;
  }
}

// -- sound -------------------------------------------------------------------------------------------

async function hear(button) {
  const was = button.classList.contains("playing");
  silence();
  if (was) return;
  const [began, ended] = button.dataset.play.split(" ").map(Number);
  button.classList.add("playing");
  button.textContent = "■";
  try {
    await play(pieces, Math.max(0, began - 0.2), ended + 0.3, silence);
  } catch (problem) {
    silence();
    toast(problem.message, "error");
  }
}

function silence() {
  stop();
  for (const button of document.querySelectorAll("[data-play].playing")) {
    button.classList.remove("playing");
    button.textContent = "▶";
  }
}

// -- keys and clicks -----------------------------------------------------------------------------------

const edit = (box) => {
  if (!box) return;
  box.focus();
  box.setSelectionRange(box.value.length, box.value.length);
};

const bindings = {
  j: () => show(at + 1), k: () => show(at - 1), e: () => edit(steps[at] && thought(steps[at])),
  p() {
    const button = steps[at]?.querySelector("[data-play]");
    if (button) hear(button);
    else toast("Nothing was said beside this step.");
  },
  "?": () => openDialog("help-dialog"),
};

if (judging) {
  Object.assign(bindings, {
    c: () => edit(command(steps[at])),
    s: () => put(thought(steps[at]), ""),
    x: () => toggleKept(steps[at]),
    async a() {
      const touched = Object.keys(JSON.parse(localStorage.getItem(store) ?? "{}")).filter((name) => name.includes("-"));
      const count = new Set(touched.map((name) => name.split("-")[1])).size;
      const said = count ? `With your corrections of ${count} step${count > 1 ? "s" : ""}.` : "As it is, without corrections.";
      if (await confirmed(said)) form.querySelector("[value=accepted]").click();
    },
    r: () => document.getElementById("reasons").focus(),
  });
  for (const step of steps) {
    const svg = step.querySelector(".overlay");
    if (svg) picker(svg, (places) => place(step, places));
    const box = command(step);
    const { offer, close } = completion(box, document.getElementById(box.getAttribute("aria-controls")), () => changed(step));
    box.addEventListener("input", () => { paint(step); validate(box, { quiet: true }); offer(); });
    box.addEventListener("blur", () => { close(); validate(box); });
    keep(step).addEventListener("change", () => {
      keep(step).blur(); // so that the keys go on working
      keep(step).checked = !keep(step).checked;
      toggleKept(step);
    });
  }
  document.getElementById("reasons").addEventListener("keydown", (event) => {
    if (event.key === "Enter") form.querySelector("[value=returned]").click();
  });
}

if (form) {
  if (!form.querySelector(".notice.bad")) recall();
  form.addEventListener("input", remember);
  form.addEventListener("keydown", undo);
  document.addEventListener("keydown", (event) => { if (!form.contains(event.target)) undo(event); });
  form.addEventListener("submit", (event) => {
    const reasons = document.getElementById("reasons");
    const wrong = form.querySelector("[data-command][aria-invalid]");
    if (wrong) {
      event.preventDefault();
      edit(wrong);
      toast("This action can't be read yet.", "warning");
    } else if (["returned", "rejected"].includes(event.submitter?.value) && !reasons.value.trim()) {
      event.preventDefault();
      reasons.setAttribute("aria-invalid", "true");
      reasons.focus();
      toast("Say why, so that the contributor can learn from it.", "warning");
    } else localStorage.removeItem(store);
  });
}

document.addEventListener("click", (event) => {
  const step = event.target.closest("#steps > li");
  if (step) select(steps.indexOf(step));
  const button = event.target.closest("[data-play], [data-strike]");
  if (button?.dataset.play) hear(button);
  else if (button) put(thought(button.closest("li")), "");
});
document.addEventListener("focusin", (event) => {
  const step = event.target.closest("#steps > li");
  if (step) select(steps.indexOf(step));
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") event.target.closest("input, textarea")?.blur();
});

bindDialogs();
bindKeys(bindings);
steps.forEach(paint);
addEventListener("resize", () => steps.forEach(paint));
const wrong = steps.findIndex((step) => step.querySelector(".field.invalid"));
const first = wrong >= 0 ? wrong : steps.findIndex((step) => `#${step.id}` === location.hash);
if (first >= 0) show(first);
else select(0);
