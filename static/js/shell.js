// The terminal's panel: the commands of the session, and a terminal while this page has control.

const $ = (id) => document.getElementById(id);

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
    const csrf = JSON.parse(document.body.getAttribute("hx-headers"))["x-csrftoken"];
    opened.screen = new DesktopTerminal($("terminal"), {
      ticketUrl: now.ticket,
      csrf,
      onState(state, message) {
        panel.dataset.state = state;
        opened.ended = state === "closed"; // opening the panel again begins another one
        note.textContent = message;
        note.hidden = !message;
      },
    });
    opened.screen.focus();
  }

  $("shell-button").addEventListener("click", () => {
    panel.hidden = !panel.hidden;
    $("shell-button").setAttribute("aria-expanded", String(!panel.hidden));
    if (terminal && !panel.hidden) terminal.screen?.focus();
    show();
  });

  return {
    /** Say who drives and where a ticket is had; the terminal follows. */
    follow({ controller, ticket }) {
      if (controller === now.controller && ticket === now.ticket) return;
      now = { controller, ticket };
      show();
    },
  };
}
