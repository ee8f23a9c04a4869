// Keys of plain pages: [data-key="s"] is pressed by S.

import { bindKeys } from "./keys.js";

const bindings = {};
for (const target of document.querySelectorAll("[data-key]")) {
  bindings[target.dataset.key] = () => target.click();
}
bindKeys(bindings);
