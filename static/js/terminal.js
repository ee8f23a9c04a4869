// A terminal in the computer beside its screen: usable while this page has control. What reaches
// beyond the screen (titles, links, the clipboard) is dropped by the server and not enabled here.

import { freshCsrf } from "./api.js";
import { FitAddon } from "../vendor/xterm/addon-fit.mjs";
import { Terminal } from "../vendor/xterm/xterm.mjs";

const FINAL = {
  4400: "The connection broke the terminal's protocol.",
  4409: "The lease is over.",
  4410: "The desktop has gone.",
  4429: "Too many terminals are open.",
};
const RETRY_MS = 1500;

export class DesktopTerminal {
  #element; #ticketUrl; #csrf; #onState;
  #xterm; #fit = new FitAddon(); #socket = null; #terminal = ""; #offset = 0;
  #newest = 0; #timer = 0; #closed = false;
  #observer = new ResizeObserver(() => this.#resize());

  /** Open a terminal in `element`; `onState(state, message)` hears "connecting", "open", "closed". */
  constructor(element, { ticketUrl, csrf, onState }) {
    this.#element = element;
    this.#ticketUrl = ticketUrl;
    this.#csrf = csrf;
    this.#onState = onState;
    this.#xterm = new Terminal({
      fontSize: 13, scrollback: 5000, cursorBlink: true, allowProposedApi: false,
      linkHandler: { activate() {} }, // a link of the guest's opens nothing
    });
    this.#xterm.loadAddon(this.#fit);
    this.#xterm.open(element);
    this.#fit.fit();
    this.#xterm.onData((text) => this.#type(new TextEncoder().encode(text)));
    this.#xterm.onBinary((text) => this.#type(Uint8Array.from(text, (c) => c.charCodeAt(0))));
    this.#observer.observe(element);
    this.#connect();
  }

  focus() {
    this.#xterm.focus();
  }

  /** Let go of the terminal; what runs in it goes on until the lease ends. */
  close() {
    this.#closed = true;
    this.#newest += 1;
    clearTimeout(this.#timer);
    this.#observer.disconnect();
    this.#socket?.close();
    this.#xterm.dispose();
  }

  async #connect() {
    const mine = ++this.#newest;
    this.#onState("connecting", "");
    let body = null;
    try {
      const answer = await fetch(this.#ticketUrl, {
        method: "POST", headers: { "X-CSRFToken": freshCsrf() ?? this.#csrf }, body: new URLSearchParams({ mode: "control" }),
      });
      body = await answer.json();
      if (!answer.ok) return this.#end(body.error ?? `The server answered ${answer.status}.`);
    } catch {
      return this.#retry(mine);
    }
    if (mine !== this.#newest) return;
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/ws/terminal/`, ["binary", `ticket.${body.ticket}`]);
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    socket.addEventListener("open", () => {
      socket.send(JSON.stringify({ terminal: this.#terminal, offset: this.#offset, ...this.#size() }));
      this.#onState("open", "");
    });
    socket.addEventListener("message", ({ data }) => {
      if (typeof data === "string") this.#told(JSON.parse(data));
      else this.#xterm.write(new Uint8Array(data));
    });
    socket.addEventListener("close", ({ code, reason }) => {
      if (mine !== this.#newest) return;
      this.#socket = null;
      if (code === 4403 && this.#terminal) {
        this.#terminal = ""; // it is gone, or not ours any more: the next one is fresh
        this.#offset = 0;
      }
      if (FINAL[code] || code === 4403) this.#end(reason || FINAL[code]);
      else if (!this.#closed) this.#retry(mine);
    });
  }

  #told(said) {
    if ("offset" in said) [this.#terminal, this.#offset] = [said.terminal, said.offset];
    if ("exit" in said) this.#end(`The shell ended with status ${said.exit}.`);
  }

  #type(bytes) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(bytes);
  }

  #resize() {
    this.#fit.fit();
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(this.#size()));
  }

  #size() {
    return { columns: this.#xterm.cols, rows: this.#xterm.rows };
  }

  #retry(mine) {
    if (mine !== this.#newest || this.#closed) return;
    this.#onState("connecting", "The connection broke.");
    this.#timer = setTimeout(() => this.#connect(), RETRY_MS * (0.5 + Math.random()));
  }

  #end(message) {
    this.#closed = true;
    this.#socket?.close();
    this.#onState("closed", message);
  }
}
