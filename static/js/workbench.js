// The workbench: reads the panel, turns keys into verbs, and keeps desktop, overlay and editor in
// step. The desktop's element is never swapped.

import { activity } from "./activity.js";
import { post, readJson, toast } from "./api.js";
import { points, withPlace } from "./commands.js";
import { bindControls } from "./controls.js";
import { desk } from "./desk.js";
import { drafts } from "./drafts.js";
import { editor } from "./editor.js";
import { hints } from "./hints.js";
import { confirmed } from "./keys.js";
import { clearNotice, lostNotice, notice } from "./notice.js";
import { draw, pickButton } from "./overlay.js";
import { servicesMenu } from "./ports.js";
import { shellPanel } from "./shell.js";
import { thoughts } from "./thoughts.js";

const $ = (id) => document.getElementById(id);
const root = $("workbench");
const base = root.dataset.base;
const panel = $("panel");
const overlay = $("overlay");
const now = { fence: Number(root.dataset.fence), phase: "", point: "", seen: "", controller: "agent", version: "", proposals: [] };
let inFlight = 0;
let later = 0;
let askWhy = false; // after a takeover: go to the first missing thought once it is shown
let signedOut = false;
let gone = false; // the session goes on in another window, or nowhere
let acceptedAt = null; // performance.now() of the last decision, until its proposals are shown

const time = activity();
const edit = editor({ onChange: () => { paint(); keep.touch(); } });
const keep = drafts({
  url: `${base}draft/`,
  fence: () => now.fence,
  indicator: $("saved"),
  collect() {
    const [hint, typed] = [$("hint").value, why.typed()];
    if (!edit.dirty() && !hint && !Object.values(typed).some(Boolean)) return {};
    return { point: now.point, rank: edit.rank(), dirty: edit.dirty(), ...edit.value(), hint, thoughts: typed };
  },
});
const why = thoughts({
  container: $("thoughts"), url: `${base}thought/`, fence: () => now.fence, onTyped: () => keep.touch(), onSaved: refresh,
});
const screen = desk(root, { paint });
const services = servicesMenu();
const shell = shellPanel();
const pick = pickButton($("pick"), overlay, (places) =>
  edit.setCommand(places.length > 1 ? `drag(${places.flat().join(", ")})` : withPlace(edit.value().command, places[0])));

// -- the panel -------------------------------------------------------------------------------------

function refresh() {
  clearTimeout(later);
  window.htmx.trigger(panel, "tandem:refresh");
}

/** Between a decision and its proposals the page says "executing" by itself: spare them a request. */
function heard(what) {
  if (what === "proposals" || acceptedAt === null) return refresh();
  clearTimeout(later);
  later = setTimeout(refresh, 300);
}

panel.addEventListener("htmx:configRequest", (event) => (event.detail.parameters.seen = now.version));
panel.addEventListener("htmx:afterSwap", read);
panel.addEventListener("htmx:responseError", (event) => {
  if (event.detail.xhr.status !== 401) return;
  event.stopPropagation(); // said once, not at every look
  signedOut = true;
  notice("You are signed out. Sign in again in another tab: this page goes on then, and keeps what you typed.", "bad");
});

function read() {
  const { version, phase, point, seen, controller, fence, waited, ticket, width, height } = $("state").dataset;
  const begun = point !== now.point && now.point !== "";
  const arrived = phase === "ready" && (point !== now.point || now.phase !== "ready");
  Object.assign(now, { version, phase, point, seen, controller, ticket, size: [width, height], proposals: readJson("proposals", []) });
  panel.setAttribute("aria-busy", "false");
  screen.follow(now); // the marks are drawn in its frame
  if (phase === "ended" || ((begun || phase === "human") && !inFlight && !edit.dirty())) edit.reset();
  if (arrived) arrive();
  else mark();
  if (!["ready", "executing", "waiting", "idle"].includes(phase)) acceptedAt = null; // no proposals will come of it
  why.show(readJson("missing", []), saved.thoughts);
  if (askWhy && !$("thoughts").hidden) { askWhy = false; why.focus(); }
  services.follow(now);
  shell.follow(now);
  const over = ["expired", "broken", "ended", "ending"].includes(phase);
  $("editor").inert = $("ask").inert = over || phase === "human" || phase === "preparing";
  $("verbs").inert = over;
  $("control-button").firstChild.textContent = controller === "human" ? "Hand back " : "Take over ";
  $("steps").lastElementChild.scrollIntoView({ inline: "end", block: "nearest" });
  elapsed.start = performance.now() - 1000 * Number(waited);
  if (Number(fence) !== now.fence && !inFlight) lost("This session was taken up in another window. What you typed is kept.");
}

/** Proposals are there: choose the first usable one, unless something is being typed. */
function arrive() {
  if (!edit.dirty()) choose(now.proposals.find((p) => p.action)?.rank ?? null);
  else mark();
  if (acceptedAt === null) return;
  const from = acceptedAt;
  acceptedAt = null;
  requestAnimationFrame(() => requestAnimationFrame(() => {
    const { duration } = performance.measure("accept-to-proposal", { start: from });
    root.dataset.acceptToProposalMs = duration.toFixed(1);
    root.dataset.modelMs = $("state").dataset.modelMs;
  }));
}

function choose(rank) {
  const proposal = now.proposals.find((p) => p.rank === rank && p.action);
  edit.load(proposal ?? null);
  mark();
}

function mark() {
  for (const card of panel.querySelectorAll(".candidate")) {
    const chosen = Number(card.dataset.rank) === edit.rank();
    card.classList.toggle("chosen", chosen);
    card.querySelector(".choose").setAttribute("aria-pressed", String(chosen));
  }
  paint();
}

function paint() {
  const marks = now.phase !== "ready" ? [] : now.proposals.filter((p) => p.action).map((p) => ({
    action: p.action, text: p.command, label: String(p.rank), kind: `c${p.rank}`, chosen: p.rank === edit.rank() && !edit.edited().command,
  }));
  const action = edit.edited().command && now.controller === "agent" ? edit.action() : null;
  if (action) marks.push({ action, text: edit.value().command, label: "✎", kind: "edit" });
  marks.sort((a, b) => Number(Boolean(a.chosen)) - Number(Boolean(b.chosen)));
  draw(overlay, marks);
}

const elapsed = { start: performance.now() };
setInterval(() => {
  const shown = panel.querySelector("[data-elapsed]");
  if (shown) shown.textContent = `${Math.round((performance.now() - elapsed.start) / 1000)} s`;
}, 1000);

// -- verbs -----------------------------------------------------------------------------------------

async function verb(name, body = {}) {
  inFlight += 1;
  const answer = await post(`${base}${name}/`, { fence: now.fence, ...body });
  inFlight -= 1;
  if (answer.fence) now.fence = answer.fence;
  if (answer.ok) clearNotice();
  else if (answer.error === "StaleFence") lost(answer.message);
  return answer;
}

async function decide({ rank = edit.rank(), typed = edit.dirty() } = {}) {
  if (inFlight || !now.point || !["ready", "failed", "waiting"].includes(now.phase)) return;
  if (acceptedAt !== null && now.phase === "ready") return; // a second Enter, before the panel has moved on
  const proposal = now.proposals.find((p) => p.rank === rank);
  if (!typed && !proposal?.action) return edit.focus("command");
  if (typed && !edit.validate()) return edit.focus("command");
  const action = typed ? edit.action() : proposal.action;
  if (["finish", "fail"].includes(action.type) && !(await confirmed(typed ? edit.value().command : proposal.command))) return;
  const body = { decision_point: Number(now.point), proposal_rank: rank, seen: now.seen, active_ms: time.take() };
  if (typed) Object.assign(body, edit.value());
  acceptedAt = performance.now();
  performance.mark("accept");
  panel.setAttribute("aria-busy", "true");
  draw(overlay, [{ action, text: "", label: "…", kind: proposal ? `c${rank}` : "edit", chosen: true }].filter((m) => points(m.action).length));
  const answer = await verb("decide", body);
  if (answer.ok) {
    edit.reset();
    keep.clear();
    return heard("step");
  }
  time.give(body.active_ms);
  acceptedAt = null;
  panel.setAttribute("aria-busy", "false");
  if (answer.status === 400) edit.fail(answer.message);
  else if (answer.error !== "StaleFence") notice(answer.message);
  paint();
  refresh();
}

async function ask() {
  const answer = await verb("propose", { hint: $("hint").value.trim() });
  if (!answer.ok) return notice(answer.message);
  $("hint").value = "";
  $("hint").blur();
  refresh();
}

async function control() {
  if (inFlight) return toast("One moment: a step is being done.");
  const back = now.controller === "human";
  const answer = await verb(back ? "hand-back" : "take-over");
  if (!answer.ok) return notice(answer.message);
  now.controller = answer.controller;
  screen.follow({ ...now, phase: back ? "waiting" : "human" });
  if (back) {
    const n = answer.steps.length;
    toast(n ? `${n} step${n > 1 ? "s" : ""} by hand: say why.` : "You did nothing on the desktop.");
    askWhy = n > 0;
  } else screen.focus();
  refresh();
}

function lost(text) {
  acceptedAt = null;
  clearInterval(beat);
  lostNotice(text);
  if (!gone) keep.again(); // once: later it would take the place of what the other window has typed
  gone = true;
}

// -- choosing by keys --------------------------------------------------------------------------------

function step(by) {
  const ranks = now.proposals.filter((p) => p.action).map((p) => p.rank);
  if (ranks.length) choose(ranks[(ranks.indexOf(edit.rank()) + by + ranks.length) % ranks.length]);
}

function number(rank, atOnce) {
  if (now.phase !== "ready" || !now.proposals.some((p) => p.rank === rank && p.action)) return;
  if (atOnce || (rank === edit.rank() && !edit.dirty())) decide({ rank, typed: atOnce ? false : edit.dirty() });
  else choose(rank);
}

bindControls({
  root, desktop: $("desktop"), edit, pick, decide, choose, number, step, control, ask, verb, refresh, keep, shell, services,
  own: () => { edit.load(null); mark(); edit.focus("command"); },
  refused(answer) {
    notice(answer.message);
    if (answer.error === "MissingThoughts") why.focus();
  },
});

// -- life --------------------------------------------------------------------------------------------

async function heartbeat() {
  if (["ended", "expired", "broken"].includes(now.phase)) return;
  const answer = await post(`${base}heartbeat/`, { fence: now.fence });
  if (answer.ok) {
    root.dataset.expires = answer.expires_at;
    if (signedOut) clearNotice();
    signedOut = false;
  } else if (answer.error === "StaleFence") lost(answer.message);
  else if (answer.status === 401) notice(answer.message, "bad");
}
const beat = setInterval(heartbeat, 15_000);
heartbeat();

const saved = readJson("draft", {});
read();
if (saved.dirty && (saved.command || saved.thought)) {
  if (saved.point === now.point && saved.rank) choose(saved.rank);
  else edit.load(null);
  edit.restore(saved);
  mark();
  toast("What you typed before is back.");
}
$("hint").value = saved.hint ?? "";
$("saved").textContent = "";
hints(`/ws/session/${root.dataset.session}/`, heard, (open) => (root.dataset.hints = open ? "open" : "closed"));
