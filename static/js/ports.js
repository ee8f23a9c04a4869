// What programs of the computer serve: their ports, each opened in a tab on a host name of its own.

import { csrf, toast } from "./api.js";

const menu = () => document.getElementById("services");

async function ask(url, method) {
  try {
    const answer = await fetch(url, { method, headers: { "x-csrftoken": csrf() } });
    return await answer.json();
  } catch {
    return { error: "The server can't be reached." };
  }
}

/** Post the ticket there, in a tab that can't reach this one; it never stands in an address. */
function enter({ url, ticket }) {
  const form = document.createElement("form");
  Object.assign(form, { method: "post", action: url, target: "_blank", rel: "noopener noreferrer", hidden: true });
  const field = Object.assign(document.createElement("input"), { type: "hidden", name: "ticket", value: ticket });
  form.append(field);
  document.body.append(form);
  form.submit();
  form.remove();
}

export function servicesMenu() {
  let ports = "";
  let byKey = false; // opened by a key: the first service gets the focus

  async function open(port) {
    const answer = await ask(`${ports}/${port}/open`, "POST");
    if (answer.error) toast(answer.error, "error");
    else enter(answer);
  }

  function row(port) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: `Port ${port}`, className: "button quiet small" });
    button.addEventListener("click", () => open(port));
    const item = document.createElement("li");
    item.append(button);
    return item;
  }

  menu().addEventListener("toggle", async () => {
    if (!menu().open || !ports) return;
    const list = menu().querySelector("ul");
    list.replaceChildren("Looking…");
    const answer = await ask(ports, "GET");
    const found = (answer.ports ?? []).map(row);
    list.replaceChildren(...(found.length ? found : [answer.error ?? "No program listens on a port."]));
    if (byKey) list.querySelector("button")?.focus();
    byKey = false;
  });
  menu().addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu().open) return;
    menu().open = false;
    menu().querySelector("summary").focus();
  });

  return {
    toggle() {
      if (!ports) return;
      byKey = !menu().open;
      menu().open = byKey;
    },
    /** Say where tickets of the lease are had: its ports are beside. */
    follow({ ticket }) {
      const now = ticket ? ticket.replace(/ticket$/, "ports") : "";
      if (now !== ports) menu().open = false;
      ports = now;
      menu().hidden = !ports;
    },
  };
}
