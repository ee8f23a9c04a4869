// Keys of a page: one letter, one verb. Nothing fires while somebody types or a dialog is open.

const typing = (target) => target.closest?.("input, textarea, select, [contenteditable]");

/**
 * Call `bindings[key](event)` for bare keys; a binding "Ctrl+Alt+t" also fires while the keys go to
 * the desktop, before the viewer sees them. `within` is the desktop's element, if there is one.
 */
export function bindKeys(bindings, { within = null } = {}) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey && event.altKey && !event.metaKey) {
      const chord = bindings[`Ctrl+Alt+${event.code.replace("Key", "").toLowerCase()}`];
      if (chord) take(event, chord);
      return;
    }
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return;
    if (typing(event.target) || within?.contains(event.target)) return;
    // A focused button keeps Enter and Space for itself.
    if (["Enter", " "].includes(event.key) && event.target.closest?.("button, a, summary")) return;
    const digit = /^(?:Digit|Numpad)([1-9])$/.exec(event.code)?.[1];
    if (digit && bindings.digit) take(event, () => bindings.digit(Number(digit), event.shiftKey));
    else if (event.key in bindings) take(event, bindings[event.key]);
    else if (event.key.toLowerCase() in bindings) take(event, bindings[event.key.toLowerCase()]);
  }, { capture: true });
}

function take(event, verb) {
  event.preventDefault();
  event.stopImmediatePropagation();
  if (!event.repeat || event.key.startsWith("Arrow")) verb(event);
}

/** Open dialogs by [data-open], close them by [data-close]; Ctrl+Enter submits the one that is open. */
export function bindDialogs() {
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-open]");
    if (opener) openDialog(opener.dataset.open);
    if (event.target.closest("[data-close]")) event.target.closest("dialog").close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.target.closest("dialog form")?.requestSubmit();
    }
  });
}

export function openDialog(id) {
  const dialog = document.getElementById(id);
  if (dialog && !document.querySelector("dialog[open]")) {
    dialog.showModal();
    dialog.querySelector("textarea, input, [autofocus]")?.focus();
  }
}

/** Ask before something that can't be taken back; resolves to whether the person agreed. */
export function confirmed(text) {
  const dialog = document.getElementById("confirm-dialog");
  document.getElementById("confirm-what").textContent = text;
  openDialog("confirm-dialog");
  return new Promise((resolve) => {
    let yes = false;
    dialog.querySelector("form").onsubmit = (event) => { event.preventDefault(); yes = true; dialog.close(); };
    dialog.addEventListener("close", () => resolve(yes), { once: true });
  });
}
