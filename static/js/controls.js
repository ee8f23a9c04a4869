// The workbench's keys, buttons and dialogs, each tied to one verb.

import { bindDialogs, bindKeys, openDialog } from "./keys.js";

const $ = (id) => document.getElementById(id);

export function bindControls({ root, desktop, edit, pick, decide, choose, number, step, control, ask, verb, refresh, keep, own, refused, shell, services }) {
  const acts = { control, ask, own };
  const live = (verb) => () => !$("verbs").inert && verb();
  const typing = (verb) => () => !$("editor").inert && verb();

  bindDialogs();
  bindKeys({
    digit: number, j: () => step(1), k: () => step(-1), Escape: pick.stop,
    Enter: () => ($("on") ? $("on").click() : decide()),
    e: typing(() => edit.focus("thought")), a: typing(() => edit.focus("command")), o: typing(own),
    p: typing(pick.toggle), r: typing(() => $("hint").focus()),
    t: live(control), "Ctrl+Alt+t": live(control),
    c: shell.toggle, "Ctrl+Alt+c": shell.toggle, v: services.toggle,
    f: live(() => openDialog("finish-dialog")), i: live(() => openDialog("infeasible-dialog")),
    b: live(() => openDialog("report-dialog")), s: live(() => openDialog("skip-dialog")),
    "?": () => openDialog("help-dialog"),
  }, { within: desktop });

  document.addEventListener("click", (event) => {
    const { choose: rank, accept, act } = event.target.closest("[data-choose], [data-accept], [data-act]")?.dataset ?? {};
    if (rank) choose(Number(rank));
    else if (accept) decide({ rank: Number(accept), typed: Number(accept) === edit.rank() && edit.dirty() });
    else if (act) acts[act]();
  });

  $("editor").addEventListener("submit", (event) => {
    event.preventDefault();
    document.activeElement.blur();
    decide();
  });
  $("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  $("hint").addEventListener("input", () => keep.touch());
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape") event.target.closest("input, textarea")?.blur();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.id === "thought") {
      event.target.blur(); // the keys belong to the page again
      decide();
    }
  });

  document.addEventListener("submit", async (event) => {
    const form = event.target.closest("[data-verb]");
    if (!form) return;
    event.preventDefault();
    const answer = await verb(form.dataset.verb, { outcome: form.dataset.outcome, ...Object.fromEntries(new FormData(form)) });
    if (answer.ok && answer.next) return location.assign(answer.next);
    form.querySelector(".error").textContent = answer.ok ? "" : answer.message;
    if (!answer.ok && answer.status !== 409) return;
    form.closest("dialog").close();
    if (answer.ok) refresh();
    else refused(answer);
  });
}
