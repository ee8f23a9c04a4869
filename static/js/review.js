// Replay: one step at a time, its target drawn on the screenshot; marks and corrections by keys.

import { post, readJson, toast } from "./api.js";
import { parse } from "./commands.js";
import { bindDialogs, bindKeys, openDialog } from "./keys.js";
import { draw } from "./overlay.js";

const root = document.getElementById("review");
const judging = root.tagName === "FORM";
const steps = [...root.querySelectorAll(".replay-step")];
const items = [...root.querySelectorAll(".replay-item")];
const actions = readJson("actions", {});
const store = `tandem.review.${root.dataset.session}`;
const SENT = "tandem.review.sent"; // the store whose verdict was sent: forgotten once it has arrived
let at = 0;

function show(index, { focus = false } = {}) {
  if (!steps.length) return;
  at = Math.max(0, Math.min(index, steps.length - 1));
  steps.forEach((step, i) => (step.hidden = i !== at));
  items.forEach((item, i) => item.setAttribute("aria-selected", String(i === at)));
  items[at].scrollIntoView({ block: "nearest" });
  steps[at + 1]?.querySelector("img")?.setAttribute("loading", "eager");
  paint();
  if (focus) items[at].focus();
  history.replaceState(null, "", `#step-${steps[at].dataset.step}`);
}

/** The recorded action in blue; the reviewer's correction, if it can be read, in pink. */
function paint() {
  const step = steps[at];
  const recorded = actions[step.dataset.step];
  const box = step.querySelector("[data-command]");
  const marks = [{ action: recorded, text: step.querySelector("code")?.textContent ?? recorded.type, label: String(at + 1), kind: "c1", chosen: true }];
  if (box && box.value !== box.defaultValue) {
    try {
      marks.push({ action: parse(box.value), text: box.value, label: "✎", kind: "edit" });
      box.nextElementSibling.textContent = "";
    } catch (problem) {
      box.nextElementSibling.textContent = problem.message;
    }
  }
  draw(step.querySelector("[data-overlay]"), marks);
}

// -- judging ---------------------------------------------------------------------------------------

const dot = (index) => root.querySelector(`[data-dot="${index}"]`);
const chosen = (step) => step.querySelector(".marks input:checked")?.value ?? "";

function dots() {
  for (const step of steps) {
    const corrected = [...step.querySelectorAll("textarea[name], [data-command]")].some((box) => box.value !== box.defaultValue);
    const wrong = step.querySelector(".field.invalid");
    dot(step.dataset.step).className = `mark-dot ${wrong ? "bad" : chosen(step)}${corrected ? " corrected" : ""}`;
  }
}

function setMark(value) {
  const input = steps[at]?.querySelector(`.marks input[value="${value}"]`);
  if (!input) return;
  input.checked = true;
  remember();
  if (value === "right" && at < steps.length - 1) show(at + 1);
}

/** What a reviewer typed survives a reload: kept in this browser until the verdict. */
function remember() {
  dots();
  const typed = Object.fromEntries([...new FormData(root)].filter(([name]) => name !== "csrfmiddlewaretoken" && name !== "verdict"));
  localStorage.setItem(store, JSON.stringify(typed));
}

function recall() {
  const typed = JSON.parse(localStorage.getItem(store) ?? "{}");
  for (const [name, value] of Object.entries(typed)) {
    const field = root.elements.namedItem(name);
    if (field instanceof RadioNodeList || field?.type === "radio") {
      const radio = root.querySelector(`input[name="${name}"][value="${value}"]`);
      if (radio) radio.checked = true;
    } else if (field) field.value = value;
  }
}

const edit = (name) => () => {
  const box = steps[at]?.querySelector(`[id^="${name}-"]`);
  box?.focus();
  box?.setSelectionRange?.(box.value.length, box.value.length);
};

const bindings = {
  ArrowLeft: () => show(at - 1), ArrowRight: () => show(at + 1), k: () => show(at - 1), j: () => show(at + 1),
  Home: () => show(0), End: () => show(steps.length - 1), "?": () => openDialog("help-dialog"), e: edit("thought"),
};

const sent = localStorage.getItem(SENT);
if (sent && !(judging && sent === store)) { // what comes after a verdict is another page than its own
  localStorage.removeItem(sent);
  localStorage.removeItem(SENT);
}

if (judging) {
  const verdict = (value) => () => root.querySelector(`button[name="verdict"][value="${value}"]`).click();
  Object.assign(bindings, {
    r: () => setMark("right"), w: () => setMark("wrong"), d: () => setMark("redundant"), a: edit("command"), c: edit("comment"),
    A: verdict("accepted"), T: verdict("returned"), X: verdict("rejected"),
  });
  if (!root.querySelector(".verdict .notice")) recall();
  root.addEventListener("input", () => { remember(); paint(); });
  root.addEventListener("submit", (event) => {
    const reasons = document.getElementById("reasons");
    if (["returned", "rejected"].includes(event.submitter?.value) && !reasons.value.trim()) {
      event.preventDefault();
      reasons.setAttribute("aria-invalid", "true");
      reasons.focus();
      toast("Say why, so that the author can learn from it.", "warning");
    } else if (event.submitter?.name === "verdict") {
      localStorage.setItem(SENT, store);
      history.replaceState(null, "", location.pathname); // the next session starts at its first step
    }
    else event.preventDefault(); // Enter in a box is not a verdict
  });
  dots();
}

// -- amending ----------------------------------------------------------------------------------------

for (const area of root.querySelectorAll("[data-amend]")) {
  area.addEventListener("change", async () => {
    const answer = await post(root.dataset.thoughtUrl, { step: Number(area.dataset.amend), thought: area.value });
    area.nextElementSibling.textContent = answer.ok ? "saved" : answer.message;
    if (answer.ok && !answer.missing.length) root.querySelector(".verdict button")?.removeAttribute("disabled");
  });
}

bindDialogs();
bindKeys(bindings);
root.addEventListener("click", (event) => {
  const item = event.target.closest("[data-show]");
  if (item) show(items.indexOf(item));
});
root.addEventListener("keydown", (event) => {
  if (event.key === "Escape") event.target.closest("input, textarea")?.blur();
});
const first = steps.findIndex((step) => step.querySelector(".field.invalid") || `#${step.id}` === location.hash);
show(Math.max(first, 0));
