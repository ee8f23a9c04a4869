// The list under a box in which an action is typed: what could come next, by arrows, Tab or pointer.

import { complete } from "./commands.js";

/** Offer completions for `box` in `list`; `changed` is called after one was put in. Returns {offer, close}. */
export function completion(box, list, changed) {
  let choices = [];
  let active = -1;

  function offer() {
    choices = document.activeElement === box ? complete(box.value, box.selectionStart) : [];
    active = -1;
    list.replaceChildren(...choices.map((choice, index) => {
      const item = document.createElement("li");
      item.id = `${list.id}-${index}`;
      item.role = "option";
      const label = document.createElement("code");
      label.textContent = choice.label;
      const detail = document.createElement("span");
      detail.textContent = choice.detail;
      item.append(label, detail);
      item.addEventListener("pointerdown", (event) => { event.preventDefault(); insert(choice); });
      return item;
    }));
    list.hidden = !choices.length;
    box.setAttribute("aria-expanded", String(choices.length > 0));
    box.removeAttribute("aria-activedescendant");
  }

  function insert(choice) {
    box.value = choice.text;
    box.setSelectionRange(choice.caret, choice.caret);
    changed();
    offer();
  }

  function move(by) {
    if (!choices.length) return offer();
    active = (active + by + choices.length) % choices.length;
    [...list.children].forEach((item, index) => item.setAttribute("aria-selected", String(index === active)));
    box.setAttribute("aria-activedescendant", `${list.id}-${active}`);
    list.children[active].scrollIntoView({ block: "nearest" });
  }

  function close() {
    choices = [];
    list.hidden = true;
    box.setAttribute("aria-expanded", "false");
  }

  box.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Tab" && choices.length && !event.shiftKey) {
      event.preventDefault();
      insert(choices[Math.max(active, 0)]);
    } else if (event.key === "Enter" && active >= 0 && !event.ctrlKey) {
      event.preventDefault();
      insert(choices[active]);
    } else if (event.key === "Escape" && choices.length) {
      event.stopPropagation();
      close();
    }
  });

  return { offer, close };
}
