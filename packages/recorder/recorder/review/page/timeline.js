// The time line: pictures as ticks, the sound's wave, words, steps, what is removed, what is selected.

const STEPS = 14, WAVE = 34, WORDS = 92, BOTTOM = 122;

const joined = (spans) => spans.toSorted((a, b) => a.began - b.began).reduce((all, { began, ended }) => {
  if (all.length && began <= all.at(-1).ended) all.at(-1).ended = Math.max(ended, all.at(-1).ended);
  else all.push({ began, ended });
  return all;
}, []);

export class Timeline {
  peaks = [];

  constructor(all, canvas, { seek, select }) {
    this.all = all;
    this.canvas = canvas;
    this.silent = joined(all.redactions.filter((r) => r.streams.includes("audio")));
    canvas.setAttribute("aria-valuemax", all.duration.toFixed(1));
    canvas.addEventListener("pointerdown", (event) => {
      const from = this.time(event);
      const move = (e) => {
        const to = this.time(e);
        if (Math.abs(to - from) * this.scale > 4) select(Math.min(from, to), Math.max(from, to));
      };
      canvas.setPointerCapture(event.pointerId);
      canvas.addEventListener("pointermove", move);
      canvas.addEventListener("lostpointercapture", (e) => {
        canvas.removeEventListener("pointermove", move);
        if (Math.abs(this.time(e) - from) * this.scale <= 4) { select(null, null); seek(from); }
      }, { once: true });
    });
  }

  get scale() { return (this.canvas.clientWidth - 28) / Math.max(0.1, this.all.duration); }

  x(t) { return 14 + Math.max(0, Math.min(this.all.duration, t)) * this.scale; }

  time(event) {
    const t = (event.clientX - this.canvas.getBoundingClientRect().left - 14) / this.scale;
    return Math.max(0, Math.min(this.all.duration, t));
  }

  draw(state) {
    const { canvas, all } = this, ratio = window.devicePixelRatio || 1;
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(`--${name}`);
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    const c = canvas.getContext("2d");
    c.scale(ratio, ratio);
    const box = (from, to, top, height) => c.fillRect(this.x(from), top, Math.max(1.5, this.x(to) - this.x(from)), height);
    c.fillStyle = colour("sunken");
    box(0, all.duration, WAVE, WORDS - WAVE - 4);
    c.fillStyle = colour("border-strong");
    for (const frame of all.frames) c.fillRect(this.x(frame.t), 4, 1, 5);
    this.wave(c, colour("accent"));
    c.globalAlpha = 0.28;
    c.fillStyle = colour("muted");
    for (const gap of all.gaps) box(gap.began, gap.ended, 0, BOTTOM);
    c.fillStyle = colour("warn");
    for (const r of this.silent) box(r.began, r.ended, WAVE, WORDS - WAVE - 4);
    c.fillStyle = colour("bad");
    for (const e of state.edits) {
      if (e.op === "cut") box(e.began, e.ended, 0, BOTTOM);
      if (e.op === "mute") box(e.began, e.ended, WAVE, WORDS - WAVE - 4);
    }
    c.fillStyle = colour("accent");
    if (state.from !== null) box(state.from, state.to, 0, BOTTOM);
    c.globalAlpha = 1;
    const gone = new Set(state.edits.filter((e) => e.op === "delete").map((e) => all.steps[e.index].began));
    all.steps.forEach((step, n) => {
      c.fillStyle = colour(gone.has(step.began) ? "border-strong" : n === state.step ? "bad" : "accent");
      c.beginPath();
      c.roundRect(this.x(step.began) - 2, STEPS, Math.max(5, this.x(step.ended) - this.x(step.began)), 14, 2.5);
      c.fill();
    });
    this.words(c, colour);
    c.fillStyle = colour("text");
    c.fillRect(this.x(state.t) - 0.75, 0, 1.5, BOTTOM);
    canvas.setAttribute("aria-valuenow", state.t.toFixed(1));
    canvas.setAttribute("aria-valuetext", `${state.t.toFixed(1)} seconds`);
  }

  wave(c, colour) {
    const middle = (WAVE + WORDS - 4) / 2, high = (WORDS - WAVE - 10) / 2;
    c.fillStyle = colour;
    c.globalAlpha = 0.75;
    for (const { t, seconds, values } of this.peaks) {
      const each = seconds / Math.max(1, values.length), stride = Math.max(1, Math.floor(1.5 / (each * this.scale)));
      for (let n = 0; n < values.length; n += stride) {
        const loud = Math.max(...values.slice(n, n + stride)) * high;
        if (loud) c.fillRect(this.x(t + n * each), middle - loud, Math.max(1, each * stride * this.scale - 0.5), 2 * loud);
      }
    }
    c.globalAlpha = 1;
  }

  words(c, colour) {
    c.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    c.fillStyle = colour("muted");
    let free = 0;
    for (const word of this.all.words) {
      const x = this.x(word.began);
      if (x < free) continue;
      c.fillText(word.text, x, WORDS + 16);
      free = x + c.measureText(word.text).width + 5;
    }
  }
}
