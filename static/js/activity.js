// Active time: a second counts if something was touched within the last minute on a visible page.

const IDLE_MS = 60_000;

export function activity() {
  let touched = Date.now();
  let counted = 0;
  let since = performance.now();
  for (const name of ["pointermove", "pointerdown", "keydown", "wheel", "input"]) {
    addEventListener(name, () => (touched = Date.now()), { passive: true, capture: true });
  }
  function count() {
    const now = performance.now();
    if (!document.hidden && Date.now() - touched < IDLE_MS) counted += Math.min(now - since, 2000);
    since = now;
  }
  setInterval(count, 1000);
  return {
    /** Return the milliseconds since the last call of this. */
    take() {
      count();
      const value = Math.round(counted);
      counted = 0;
      return value;
    },
    give(ms) {
      counted += ms;
    },
  };
}
