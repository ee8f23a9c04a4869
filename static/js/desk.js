// The desktop's frame: its picture, who drives, where keys go, how long it is held, what covers it.

import { csrf } from "./api.js";
import { openDesktop } from "./desktop.js";
import { pixel } from "./overlay.js";

const $ = (id) => document.getElementById(id);
const CLOSED = {
  preparing: "Preparing a computer …",
  expired: "The computer was given back.",
  broken: "The computer broke.",
  ended: "The session is over.",
  ending: "Checking the result …",
};

const clock = (seconds) =>
  seconds >= 3600 ? `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
    : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;

export function desk(root, { paint }) {
  const stage = $("stage");
  const element = $("desktop");
  const curtain = $("curtain");
  let desktop = null;
  let driver = "";
  let ticketUrl = "";
  let now = {};

  stage.addEventListener("pointermove", (event) => {
    const place = pixel($("overlay"), event);
    $("pointer").textContent = place ? `${place[0]}, ${place[1]}` : "";
  }, { capture: true });
  stage.addEventListener("pointerleave", () => ($("pointer").textContent = ""));

  const mode = () => {
    const where = [[element, "desktop"], [$("terminal"), "terminal"]].find(([at]) => at.contains(document.activeElement));
    const inside = driver === "human" && Boolean(where);
    $("focus-mode").textContent = inside ? `keys → ${where[1]} · Ctrl+Alt+T hands back` : "keys → page";
    $("focus-mode").classList.toggle("human", inside);
  };
  document.addEventListener("focusin", mode);
  document.addEventListener("focusout", () => setTimeout(mode));

  // The computer is held for so long at most; the session much shorter, unless the page beats.
  setInterval(() => {
    const left = (until) => Math.max(0, Math.round(Number(until) - Date.now() / 1000));
    const silent = left(root.dataset.expires);
    const held = left($("state").dataset.heldUntil);
    const soon = Boolean(desktop) && (silent < 75 || held < 300);
    const [label, seconds] = silent < 75 ? ["no answer from the server, expires in", silent] : ["held", held];
    $("lease").textContent = desktop ? `${label} ${clock(seconds)}` : "";
    $("lease").classList.toggle("soon", soon);
  }, 1000);

  function open() {
    desktop = openDesktop(element, {
      ticketUrl,
      csrf: csrf(),
      mode: driver === "human" ? "control" : "view",
      onState: (state, message) => {
        $("connection").dataset.state = state;
        $("connection").textContent = state;
        $("connection").title = message;
        const over = state === "closed" && Boolean(message); // nothing more will come of it
        curtain.hidden = !over && !(now.phase in CLOSED);
        if (over) curtain.textContent = message;
        paint();
      },
    });
  }

  return {
    /** Show what the session's phase and controller say; `size` is the frame's, in pixels. */
    follow({ phase, controller, ticket, size }) {
      stage.style.setProperty("--w", size[0]);
      stage.style.setProperty("--h", size[1]);
      $("overlay").setAttribute("viewBox", `0 0 ${size[0]} ${size[1]}`);
      if (phase in CLOSED || phase in CLOSED !== now.phase in CLOSED) {
        curtain.hidden = !(phase in CLOSED);
        curtain.textContent = CLOSED[phase] ?? "";
      }
      now = { phase };
      if (desktop && (phase in CLOSED || ticket !== ticketUrl)) {
        desktop.close(); // the session is over, or goes on on another computer
        desktop = null;
      }
      if (!desktop && ticket && !(phase in CLOSED)) {
        driver = controller;
        ticketUrl = ticket;
        open();
      }
      if (controller !== driver) {
        driver = controller;
        desktop?.setMode(driver === "human" ? "control" : "view");
      }
      stage.dataset.controller = controller;
      const label = phase in CLOSED ? phase : controller === "human" ? "you drive" : "agent drives";
      $("controller").textContent = label;
      $("controller").className = `badge ${controller}`;
      mode();
    },
    focus: () => desktop?.focus(),
  };
}
