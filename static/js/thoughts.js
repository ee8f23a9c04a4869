// Steps that a hand did need a thought from the annotator. The block stays outside of what is
// swapped, so that nothing that is being typed is lost.

import { post, toast } from "./api.js";

export function thoughts({ container, url, fence, onTyped, onSaved }) {
  const boxes = new Map(); // step index → textarea

  function add({ index, command, screenshot }, text) {
    const box = document.createElement("div");
    box.className = "thought-box";
    box.dataset.step = index;
    const image = document.createElement(screenshot ? "img" : "span");
    if (screenshot) Object.assign(image, { src: `/blobs/${screenshot}.png`, alt: "", width: 96, height: 54 });
    const label = document.createElement("label");
    const code = document.createElement("code");
    code.textContent = command;
    label.append(`${index + 1}. `, code); // people count from 1
    const area = document.createElement("textarea");
    Object.assign(area, { className: "input", rows: 2, placeholder: "Why did you do this?", value: text ?? "" });
    area.id = `thought-of-${index}`;
    label.htmlFor = area.id;
    area.addEventListener("input", onTyped);
    area.addEventListener("change", () => save(index, area));
    area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey || !event.shiftKey)) {
        event.preventDefault();
        next(index);
      }
    });
    const side = document.createElement("div");
    side.append(label, area);
    box.append(image, side);
    container.append(box);
    boxes.set(index, area);
  }

  async function save(index, area) {
    const text = area.value.trim();
    if (!text || area.dataset.saved === text) return;
    area.dataset.saved = text;
    const answer = await post(url, { fence: fence(), step: index, thought: text });
    if (!answer.ok) {
      area.dataset.saved = "";
      return toast(`${answer.message} Press Enter in the box to save the thought.`, "error");
    }
    onSaved();
  }

  /** Leave one box for the next empty one, and save it: also again, where that failed. */
  function next(index) {
    save(index, boxes.get(index));
    const after = [...boxes].find(([i, area]) => i > index && !area.value.trim());
    if (after) after[1].focus();
    else boxes.get(index).blur();
  }

  return {
    /** Show a box for every step of `missing`; typed text and the focus stay. */
    show(missing, draft = {}) {
      const wanted = new Set(missing.map((step) => step.index));
      for (const [index, area] of boxes) {
        if (!wanted.has(index) && document.activeElement !== area) {
          area.closest(".thought-box").remove();
          boxes.delete(index);
        }
      }
      for (const step of missing) if (!boxes.has(step.index)) add(step, draft[step.index]);
      container.hidden = !boxes.size;
      if (boxes.size && !container.querySelector("h2")) {
        const title = document.createElement("h2");
        title.textContent = "Say why, for what your hand did";
        container.prepend(title);
      }
    },
    focus() {
      ([...boxes.values()].find((area) => !area.value.trim()) ?? [...boxes.values()][0])?.focus();
    },
    typed: () => Object.fromEntries([...boxes].map(([index, area]) => [index, area.value])),
  };
}
