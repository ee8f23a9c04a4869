// The fleet's pages: live small pictures, one screen to watch, and a question before something is ended.

import { openDesktop } from "./desktop.js";

const EVERY_MS = 3000;
const AT_ONCE = 4;

/** Show the newest picture in `image`; one that fails keeps the old one and says why. */
async function refresh(image) {
  const answer = await fetch(image.dataset.thumbnail).catch(() => null);
  if (!answer?.ok) {
    image.title = answer ? await answer.text() : "The server does not answer.";
    return;
  }
  const old = image.src;
  image.src = URL.createObjectURL(await answer.blob());
  image.title = "";
  await image.decode().catch(() => {});
  if (old.startsWith("blob:")) URL.revokeObjectURL(old);
}

const seen = new Set();
const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) seen[isIntersecting ? "add" : "delete"](target);
});
document.querySelectorAll("[data-thumbnail]").forEach((image) => watcher.observe(image));

async function round() {
  if (document.visibilityState === "visible") {
    const left = [...seen];
    const work = async () => {
      for (let image = left.shift(); image; image = left.shift()) await refresh(image);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }
  setTimeout(round, EVERY_MS);
}
setTimeout(round, 100); // once the observer has told what is in view

const screen = document.getElementById("watch");
if (screen) {
  const said = document.getElementById("watch-state");
  openDesktop(screen, {
    ticketUrl: screen.dataset.ticket,
    csrf: JSON.parse(document.body.getAttribute("hx-headers"))["x-csrftoken"],
    mode: "view",
    onState: (state, message) => (said.textContent = message || `${state}, to look at only`),
  });
}

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
});
