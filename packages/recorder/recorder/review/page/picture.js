// The picture of a moment, with what was done on it, and the boxes that are painted over.

const NS = "http://www.w3.org/2000/svg";

export class Picture {
  version = 0; // a picture is asked for again when more was found on it
  sticky = false; // Shift was held: from this picture on, not only on this one

  constructor(all, host, onBlur) {
    this.all = all;
    this.host = host;
    this.onBlur = onBlur;
    this.image = host.querySelector("img");
    this.overlay = host.querySelector("svg");
    this.image.addEventListener("load", () => this.draw());
    host.addEventListener("pointerdown", (event) => this.begin(event));
  }

  get caption() {
    return this.shown ? "Drag on the picture to paint over a region; with Shift from here to the end." : "";
  }

  show(t, step, edits) {
    const frames = this.all.frames;
    const at = step?.frame ? frames.findLastIndex((f) => f.sha256 === step.frame && f.t <= t) : frames.findLastIndex((f) => f.t <= t);
    this.shown = step && !step.frame ? null : frames[at] ?? (step?.frame ? { t, sha256: step.frame } : null);
    this.step = step;
    this.boxes = edits.filter((e) => e.op === "blur" && this.shown && e.began <= this.shown.t && this.shown.t <= e.ended);
    const address = this.shown ? `frames/${this.shown.sha256}.png?${this.version}` : "";
    if (address && this.image.getAttribute("src") !== address) this.image.src = address;
    if (!address) this.image.removeAttribute("src");
    this.host.querySelector("#none").hidden = Boolean(address);
    this.draw();
  }

  again() { this.version += 1; }

  draw(draft = null) {
    const { width, height } = this.all.screen, image = this.image.getBoundingClientRect(), host = this.host.getBoundingClientRect();
    this.overlay.replaceChildren();
    if (!this.shown || !image.width) return;
    Object.assign(this.overlay.style, { left: `${image.left - host.left}px`, top: `${image.top - host.top}px`, width: `${image.width}px`, height: `${image.height}px` });
    this.overlay.setAttribute("viewBox", `0 0 ${width} ${height}`);
    for (const { box: [x, y, w, h] } of this.boxes) this.add("rect", "blur", { x, y, width: w, height: h });
    if (draft) this.add("rect", "draft", { x: draft[0], y: draft[1], width: draft[2], height: draft[3] });
    if (!this.step) return;
    const { action, element } = this.step;
    if (element?.bounds[2]) {
      const [x, y, w, h] = element.bounds;
      this.add("rect", "element", { x, y, width: w, height: h, rx: 3 });
    }
    const place = action.path?.[0] ?? (action.x === undefined ? null : [action.x, action.y]);
    if (action.path) this.add("polyline", "path", { points: action.path.map((p) => p.join(",")).join(" ") });
    if (place) this.add("circle", "target", { cx: place[0], cy: place[1], r: width / 90 });
  }

  add(tag, className, values) {
    const node = document.createElementNS(NS, tag);
    node.setAttribute("class", className);
    node.setAttribute("vector-effect", "non-scaling-stroke");
    for (const [name, value] of Object.entries(values)) node.setAttribute(name, value);
    this.overlay.append(node);
  }

  place(event) {
    const { width, height } = this.all.screen, image = this.image.getBoundingClientRect();
    const clamp = (value, most) => Math.round(Math.max(0, Math.min(most, value)));
    return [clamp(((event.clientX - image.left) / image.width) * width, width), clamp(((event.clientY - image.top) / image.height) * height, height)];
  }

  begin(event) {
    if (!this.shown || event.button !== 0) return;
    const [x0, y0] = this.place(event), shown = this.shown;
    const box = (e) => {
      const [x, y] = this.place(e);
      return [Math.min(x, x0), Math.min(y, y0), Math.abs(x - x0), Math.abs(y - y0)];
    };
    const move = (e) => this.draw(box(e));
    const up = (e) => {
      this.host.removeEventListener("pointermove", move);
      const made = box(e);
      this.sticky = e.shiftKey;
      if (e.type === "pointerup" && made[2] > 3 && made[3] > 3) this.onBlur(made, shown);
      else this.draw();
    };
    this.host.setPointerCapture(event.pointerId);
    this.host.addEventListener("pointermove", move);
    this.host.addEventListener("pointerup", up, { once: true });
    this.host.addEventListener("lostpointercapture", () => this.host.removeEventListener("pointermove", move), { once: true });
  }
}
