// What the annotator is about to do: the thought and the action, filled from a proposal, edited by
// typing, by completion, or by picking a place.

import { parse, usage } from "./commands.js";
import { completion } from "./completion.js";

const $ = (id) => document.getElementById(id);

export function editor({ onChange }) {
  const thought = $("thought");
  const command = $("command");
  const list = $("completions");
  const error = $("command-error");
  const origin = $("origin");
  const aside = new Map(); // edits of proposals that are not shown now, by rank
  let rank = null;
  let base = { thought: "", command: "" };

  const edited = () => ({
    thought: thought.value.trim() !== base.thought.trim(),
    command: command.value.trim() !== base.command.trim(),
  });
  const dirty = () => Object.values(edited()).some(Boolean);

  function say() {
    const { thought: t, command: c } = edited();
    const words = rank === null ? (dirty() ? "your own" : "nothing chosen")
      : t && c ? `${rank}, both edited` : t ? `${rank}, thought edited` : c ? `${rank}, action edited` : `as proposed by ${rank}`;
    origin.textContent = words;
    origin.className = `badge ${dirty() ? "human" : rank === null ? "" : "agent"}`;
  }

  function changed() {
    say();
    error.textContent = "";
    error.classList.remove("muted");
    command.removeAttribute("aria-invalid");
    const text = command.value.trim();
    if (text && document.activeElement === command) {
      error.textContent = usage(text);
      error.classList.add("muted");
    }
    onChange();
  }

  const { offer, close } = completion(command, list, changed);
  command.addEventListener("input", () => { changed(); offer(); });
  command.addEventListener("focus", () => { changed(); offer(); });
  command.addEventListener("blur", () => { close(); validate(); });
  thought.addEventListener("input", changed);

  /** Say under the box what is wrong; return the action, or null. */
  function validate() {
    error.textContent = "";
    error.classList.remove("muted");
    if (!command.value.trim()) return null;
    try {
      const action = parse(command.value);
      command.removeAttribute("aria-invalid");
      return action;
    } catch (problem) {
      error.textContent = problem.message;
      command.setAttribute("aria-invalid", "true");
      return null;
    }
  }

  return {
    /** Show a proposal (or null: start from nothing); what was typed over another one is put aside. */
    load(proposal) {
      if (dirty()) aside.set(rank, { thought: thought.value, command: command.value });
      rank = proposal?.rank ?? null;
      base = { thought: proposal?.thought ?? "", command: proposal?.command ?? "" };
      const typed = aside.get(rank) ?? base;
      thought.value = typed.thought;
      command.value = typed.command;
      changed();
    },
    /** Forget everything: another step begins. */
    reset() {
      aside.clear();
      rank = null;
      base = { thought: "", command: "" };
      thought.value = command.value = "";
      changed();
    },
    restore(draft) {
      thought.value = draft.thought ?? "";
      command.value = draft.command ?? "";
      changed();
    },
    setCommand(text) {
      command.value = text;
      changed();
      validate();
    },
    fail(message) {
      error.classList.remove("muted");
      error.textContent = message;
      command.setAttribute("aria-invalid", "true");
      command.focus();
    },
    action() {
      try { return parse(command.value); } catch { return null; }
    },
    validate,
    dirty,
    edited,
    rank: () => rank,
    value: () => ({ thought: thought.value, command: command.value }),
    focus(name) {
      const box = name === "thought" ? thought : command;
      box.focus();
      if (name === "thought") box.setSelectionRange(box.value.length, box.value.length);
    },
  };
}
