// Line plots over the training step: one uPlot per element, in the colours of the theme.
import uPlot from "../vendor/uplot/uPlot.esm.js";

const COLOURS = ["--c1", "--c2", "--c3", "--c4", "--c5", "--accent", "--ok", "--bad"];
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export const short = (value) => {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  return size !== 0 && (size < 0.001 || size >= 100000) ? value.toExponential(2) : String(+value.toPrecision(4));
};

// Exponential moving average, as TensorBoard's: without a pull towards 0 at the beginning.
export function smoothed(values, weight) {
  let mean = 0;
  let count = 0;
  return values.map((value) => {
    if (value === null) return null;
    mean = mean * weight + (1 - weight) * value;
    count += 1;
    return mean / (1 - weight ** count);
  });
}

// The range of the vertical axis; of a series that never moves uPlot would make one of a hundred.
function around(_, low, high) {
  if (low === null || low !== high) return uPlot.rangeNum(low ?? 0, high ?? 1, 0.1, true);
  return low === 0 ? [0, 1] : [Math.min(0, 2 * low), Math.max(0, 2 * low)];
}

// `series` is a list of {name, points: Map(step -> value), dash}; draw() shows what is in them now.
// `legend` shows the values under the cursor, `log` is the scale at first, `x` writes the places on the axis
// below, `incrs` are the distances between them.
export class Plot {
  constructor(element, series, { sync, legend = series.length > 1, log = false, label = "step", x, incrs } = {}) {
    this.element = element;
    this.series = series;
    this.sync = sync;
    this.legend = legend;
    this.log = log;
    this.label = label;
    this.x = x;
    this.incrs = incrs;
    this.weight = 0;
    this.chart = null;
    new ResizeObserver(() => this.chart?.setSize(this.#size())).observe(element);
    // A canvas does not follow CSS variables: made anew when the theme changes.
    new MutationObserver(() => this.remake()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }

  draw() {
    const data = this.#data();
    if (data[0].length === 0) return;
    if (this.chart) this.chart.setData(data);
    else this.#make(data);
  }

  // Draw with other settings: {weight, log, label, x, incrs}.
  change(settings) {
    Object.assign(this, settings);
    this.remake();
    this.draw();
  }

  remake() {
    if (!this.chart) return;
    this.chart.destroy();
    this.chart = null;
    this.draw();
  }

  #data() {
    const steps = [...new Set(this.series.flatMap((one) => [...one.points.keys()]))].sort((a, b) => a - b);
    const lines = this.series.map((one) => steps.map((step) => {
      const value = one.points.get(step) ?? null;
      return this.log && value !== null && value <= 0 ? null : value;
    }));
    // What was measured stays behind the smoothed line, faintly.
    return this.weight ? [steps, ...lines, ...lines.map((line) => smoothed(line, this.weight))] : [steps, ...lines];
  }

  #size() {
    const tall = this.element.classList.contains("tall");
    // Where the sheet fixes the height, the legend below needs a line of it.
    const legend = this.legend && !this.element.closest(".plot-grid") ? 26 : 0;
    return { width: this.element.clientWidth, height: (tall ? 300 : 160) - legend };
  }

  #make(data) {
    const axis = { stroke: css("--muted"), grid: { stroke: css("--border"), width: 1 }, ticks: { show: false } };
    const line = (one, at, faint) => ({
      label: one.name, class: faint ? "faint" : undefined,
      stroke: css(COLOURS[at % COLOURS.length]) + (faint ? "44" : ""),
      width: faint ? 1 : 1.5, dash: one.dash, spanGaps: true,
      value: (_, value) => short(value), points: { show: !faint && data[0].length < 40 },
    });
    const whole = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 50000, 100000];
    this.chart = new uPlot({
      ...this.#size(),
      scales: { x: { time: false }, y: this.log ? { distr: 3 } : { range: around } },
      cursor: { sync: this.sync ? { key: this.sync } : undefined, drag: { x: true, y: false } },
      legend: { show: this.legend },
      axes: [
        { ...axis, size: 30, incrs: this.incrs ?? whole, ...(this.x ? { values: (_, ticks) => ticks.map(this.x) } : {}) },
        { ...axis, size: 64, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : short(tick))) },
      ],
      series: [
        { label: this.label, value: (_, value) => (value === null ? "–" : (this.x ?? short)(value)) },
        ...this.series.map((one, at) => line(one, at, this.weight > 0)),
        ...(this.weight ? this.series.map((one, at) => line(one, at, false)) : []),
      ],
    }, data, this.element);
    this.element.classList.toggle("smooth", this.weight > 0);
  }
}
