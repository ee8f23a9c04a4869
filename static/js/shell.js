// The terminal's panel: the commands of the session, and a terminal while this page has control.

import { csrf } from "./api.js";

const $ = (id) => document.getElementById(id);
const LOWEST_PX = 120;
const STEP_PX = 24;

/** Let the panel's upper edge be moved, by the pointer and by arrow keys. */
function bindEdge(edge, panel) {
  const set = (height) => {
    const most = Math.max(LOWEST_PX, panel.parentElement.clientHeight * 0.6);
    panel.style.height = `${Math.round(Math.min(most, Math.max(LOWEST_PX, height)))}px`;
  };
  edge.addEventListener("keydown", (event) => {
    const by = { ArrowUp: STEP_PX, ArrowDown: -STEP_PX }[event.key];
    if (!by) return;
    event.preventDefault();
    set(panel.offsetHeight + by);
  });
  edge.addEventListener("pointerdown", (event) => {
    const from = panel.offsetHeight + event.clientY;
    const move = ({ clientY }) => set(from - clientY);
    edge.setPointerCapture(event.pointerId);
    edge.addEventListener("pointermove", move);
    edge.addEventListener("lostpointercapture", () => edge.removeEventListener("pointermove", move), { once: true });
    event.preventDefault();
  });
}

export function shellPanel() {
  const panel = $("shell");
  const note = $("shell-note");
  let terminal = null;
  let now = { controller: "agent", ticket: "" };

  async function show() {
    const mine = !panel.hidden && now.controller === "human" && now.ticket;
    if (!mine || terminal?.ended || now.ticket !== terminal?.ticket) {
      terminal?.screen?.close();
      terminal = null;
      $("terminal").replaceChildren();
    }
    if (!mine) note.textContent = "The terminal is yours while you drive: take over first.";
    $("terminal").hidden = !mine;
    note.hidden = Boolean(mine);
    if (!mine || terminal) return;
    const opened = (terminal = { ticket: now.ticket, screen: null, ended: false });
    const { DesktopTerminal } = await import("./terminal.js"); // 350 kB, for those who open it
    if (terminal !== opened) return;
    opened.screen = new DesktopTerminal($("terminal"), {
      ticketUrl: now.ticket,
      csrf: csrf(),
      onState(state, message) {
        panel.dataset.state = state;
        opened.ended = state === "closed"; // opening the panel again begins another one
        note.textContent = message;
        note.hidden = !message;
      },
    });
    opened.screen.focus();
  }

  function toggle() {
    panel.hidden = !panel.hidden;
    $("shell-button").setAttribute("aria-expanded", String(!panel.hidden));
    if (panel.hidden) $("shell-button").focus(); // the keys are the page's again
    else terminal?.screen?.focus();
    show();
  }

  $("shell-button").addEventListener("click", toggle);
  bindEdge($("shell-edge"), panel);

  return {
    toggle,
    /** Say who drives and where a ticket is had; the terminal follows. */
    follow({ controller, ticket }) {
      if (controller === now.controller && ticket === now.ticket) return;
      now = { controller, ticket };
      show();
    },
  };
}
