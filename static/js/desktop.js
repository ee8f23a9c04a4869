// One live desktop in a page: noVNC's RFB behind one-time tickets, with reconnect and coordinates.

import { freshCsrf } from "./api.js";
import RFB from "../vendor/novnc/core/rfb.js";

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;
const STABLE_MS = 5_000;

// Trying again would end the same way: the relay's codes (sandbox/gate.py), and HTTP's.
const FINAL = {
  4400: "The relay did not understand this page; reload it.",
  4401: "The ticket was refused; reload the page.",
  4403: "You may not see this desktop.",
  4408: "The connection is too slow for this desktop; reload the page to try again.",
  4409: "This desktop was given back, or opened in another window.",
  401: "You are signed out; sign in again.",
  403: "You may not see this desktop.",
  404: "This desktop is gone.",
  409: "This desktop was given back.",
};

/**
 * Show the desktop of a lease inside `element`, which keeps its place and size in the page.
 *
 * @param {HTMLElement} element
 * @param {object} options
 * @param {string} options.ticketUrl where a ticket is asked for, by POST
 * @param {string} options.csrf Django's CSRF token
 * @param {"view"|"control"} [options.mode] the server decides what is really let through
 * @param {(state: "connecting"|"connected"|"reconnecting"|"closed", message: string) => void} [options.onState]
 * @param {(place: {x: number, y: number}|null) => void} [options.onPointer] in pixels of the frame
 * @returns {Desktop} an EventTarget: "resize" when the picture changes size or place on the page,
 *   "keys" when the keyboard goes to the desktop or back to the page (also data-keys on `element`)
 */
export function openDesktop(element, { ticketUrl, csrf, mode = "view", onState = () => {}, onPointer = () => {} }) {
  return new Desktop(element, { ticketUrl, csrf, mode, onState, onPointer });
}

class Desktop extends EventTarget {
  #element; #ticketUrl; #csrf; #onState;
  #mode; #held = ""; // what is wanted, and what the open socket's ticket was for
  #rfb = null; #screen = null;
  #attempt = 0; #newest = 0; #timer = 0; #closed = false;
  #listening = new AbortController();
  #observer = new ResizeObserver(() => this.dispatchEvent(new Event("resize")));

  constructor(element, { ticketUrl, csrf, mode, onState, onPointer }) {
    super();
    this.#element = element;
    this.#ticketUrl = ticketUrl;
    this.#csrf = csrf;
    this.#mode = mode;
    this.#onState = onState;
    const { signal } = this.#listening;
    element.addEventListener("pointermove", (e) => onPointer(this.toFrame(e.clientX, e.clientY)), { signal, capture: true });
    element.addEventListener("pointerleave", () => onPointer(null), { signal });
    element.addEventListener("focusin", () => this.#keys("desktop"), { signal });
    element.addEventListener("focusout", () => this.#keys("page"), { signal });
    if (getComputedStyle(element).position === "static") element.style.position = "relative";
    this.#observer.observe(element);
    this.#keys("page");
    this.#connect();
  }

  /** "view" or "control". Control needs a socket of its own; the picture stays until it is open. */
  setMode(mode) {
    if (mode === this.#mode) return;
    this.#mode = mode;
    if (mode === "control" && this.#held !== "control") this.#connect();
    else if (this.#rfb) this.#apply(this.#rfb);
    if (mode === "view" && this.#element.contains(document.activeElement)) document.activeElement.blur();
  }

  /** Send the keyboard to the desktop; clicking on it does the same while this page controls it. */
  focus() {
    this.#rfb?.focus({ preventScroll: true });
  }

  /** Give the keyboard back to the page. */
  blur() {
    this.#rfb?.blur();
  }

  /** Return the pixel of the frame under a point of the window, or null outside of the picture. */
  toFrame(clientX, clientY) {
    const box = this.#canvas?.getBoundingClientRect();
    if (!box?.width) return null;
    const x = Math.floor(((clientX - box.left) * this.#canvas.width) / box.width);
    const y = Math.floor(((clientY - box.top) * this.#canvas.height) / box.height);
    const inside = x >= 0 && y >= 0 && x < this.#canvas.width && y < this.#canvas.height;
    return inside ? { x, y } : null;
  }

  /** Return where the middle of a pixel of the frame is in the window, or null without a picture. */
  fromFrame(x, y) {
    const box = this.#canvas?.getBoundingClientRect();
    if (!box?.width) return null;
    return {
      x: box.left + ((x + 0.5) * box.width) / this.#canvas.width,
      y: box.top + ((y + 0.5) * box.height) / this.#canvas.height,
    };
  }

  /** Close the screen for good. */
  close() {
    if (this.#closed) return;
    this.#end("");
    this.#listening.abort();
    this.#observer.disconnect();
    this.#drop(this.#rfb, this.#screen);
    this.#rfb = this.#screen = null;
  }

  get #canvas() {
    return this.#screen?.querySelector("canvas");
  }

  #keys(where) {
    this.#element.dataset.keys = where;
    this.dispatchEvent(new CustomEvent("keys", { detail: where }));
  }

  #apply(rfb) {
    const control = this.#mode === "control";
    rfb.viewOnly = !control; // a courtesy: the relay drops what it must
    rfb.focusOnClick = control;
  }

  async #connect() {
    clearTimeout(this.#timer);
    const mine = ++this.#newest;
    if (!this.#rfb) this.#onState(this.#attempt ? "reconnecting" : "connecting", "");
    let answer, body;
    try {
      answer = await fetch(this.#ticketUrl, {
        method: "POST",
        headers: { "X-CSRFToken": freshCsrf() ?? this.#csrf },
        body: new URLSearchParams({ mode: this.#mode }),
      });
      body = answer.ok ? await answer.json() : null;
    } catch {
      answer = null;
    }
    if (mine !== this.#newest || this.#closed) return;
    if (body) this.#open(mine, body);
    else if (answer && FINAL[answer.status]) this.#end(FINAL[answer.status]);
    else this.#retry(answer ? `The server answered ${answer.status}.` : "The server can't be reached.");
  }

  #open(mine, { ticket, mode }) {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    // Our own WebSocket: RFB would keep the close code to itself.
    const socket = new WebSocket(`${scheme}://${location.host}/ws/desktop/`, ["binary", `ticket.${ticket}`]);
    const screen = document.createElement("div");
    Object.assign(screen.style, { position: "absolute", inset: "0", visibility: "hidden" });
    this.#element.append(screen);
    const rfb = new RFB(screen, socket, { shared: true });
    rfb.scaleViewport = true;
    rfb.background = "transparent";
    this.#apply(rfb);
    rfb.addEventListener("connect", () => {
      if (mine !== this.#newest || this.#closed) return this.#drop(rfb, screen);
      const [before, old] = [this.#rfb, this.#screen];
      [this.#rfb, this.#screen, this.#held] = [rfb, screen, mode];
      this.#element.dataset.held = mode; // what this screen really may do, by now
      const focused = old?.contains(document.activeElement);
      screen.style.visibility = "";
      if (focused) this.focus();
      this.#drop(before, old);
      this.#observer.observe(screen.querySelector("canvas"));
      this.#apply(rfb);
      this.#timer = setTimeout(() => (this.#attempt = 0), STABLE_MS);
      this.#onState("connected", "");
    });
    socket.addEventListener("close", ({ code, reason }) => {
      screen.remove();
      if (this.#rfb === rfb) {
        this.#rfb = this.#screen = null;
        this.#held = this.#element.dataset.held = "";
        if (mine !== this.#newest && !this.#closed) this.#onState("reconnecting", reason);
      }
      if (mine !== this.#newest || this.#closed) return;
      if (FINAL[code]) this.#end(FINAL[code]);
      else this.#retry(reason || "The connection broke.");
    });
  }

  #retry(message) {
    clearTimeout(this.#timer);
    const longest = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** this.#attempt++);
    // Jitter: the pages of a server that comes back do not all come at once.
    this.#timer = setTimeout(() => this.#connect(), longest * (0.5 + Math.random() / 2));
    if (!this.#rfb) this.#onState("reconnecting", message);
  }

  #end(message) {
    clearTimeout(this.#timer);
    this.#closed = true;
    this.#onState("closed", message);
  }

  #drop(rfb, screen) {
    rfb?.disconnect();
    screen?.remove();
  }
}
