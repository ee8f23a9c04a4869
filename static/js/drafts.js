// What is being typed, kept on the server: saved half a second after the last key, and when the
// page goes away. A refused save (409) is kept by the server too; the page keeps the text as well.

import { post } from "./api.js";

const DELAY = 500;

export function drafts({ url, fence, collect, indicator }) {
  let timer = null;
  let saved = "{}";

  async function save(keepalive = false) {
    clearTimeout(timer);
    timer = null;
    const draft = collect();
    const text = JSON.stringify(draft);
    if (text === saved) {
      indicator.textContent = "";
      return;
    }
    const answer = await post(url, { fence: fence(), draft }, { keepalive });
    if (answer.ok) saved = text;
    indicator.textContent = answer.ok ? "saved" : answer.status === 409 ? "kept, but the session moved on" : "not saved yet";
  }

  addEventListener("pagehide", () => timer && save(true));
  document.addEventListener("visibilitychange", () => document.hidden && timer && save(true));

  return {
    touch() {
      if (!timer && JSON.stringify(collect()) === saved) return;
      indicator.textContent = "…";
      clearTimeout(timer);
      timer = setTimeout(save, DELAY);
    },
    /** Save at once: what a refused verb carried has replaced the draft on the server. */
    again() {
      saved = "{}";
      return save();
    },
    /** What was typed became a step; the server has dropped the draft with the same stroke. */
    clear() {
      clearTimeout(timer);
      timer = null;
      saved = JSON.stringify(collect());
      indicator.textContent = "";
    },
  };
}
