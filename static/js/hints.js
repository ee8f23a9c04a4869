// Hints that something changed. They may be lost or come twice: the caller reads the panel again,
// and a slow poll stands behind them.

const POLL_MS = 4000;

export function hints(path, onHint, onState) {
  let wait = 500;
  let socket = null;

  function open() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    socket = new WebSocket(`${scheme}://${location.host}${path}`);
    socket.addEventListener("open", () => {
      wait = 500;
      onState(true);
      onHint("session"); // what was missed while it was closed
    });
    socket.addEventListener("message", (event) => onHint(JSON.parse(event.data).changed));
    socket.addEventListener("close", () => {
      onState(false);
      setTimeout(open, wait * (0.75 + Math.random() / 2));
      wait = Math.min(wait * 2, 10_000);
    });
  }

  open();
  setInterval(() => document.hidden || onHint("poll"), POLL_MS);
}
