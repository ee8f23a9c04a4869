// Line plots over the training step: one uPlot per element, in the colours of the theme.
import uPlot from "../vendor/uplot/uPlot.esm.js";

const COLOURS = ["--c1", "--c2", "--c3", "--c4", "--c5", "--accent", "--ok", "--bad"];
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export const short = (value) => {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  return size !== 0 && (size < 0.001 || size >= 100000) ? value.toExponential(2) : String(+value.toPrecision(4));
};

// `series` is a list of {name, points: Map(step -> value), dash}; draw() shows what is in them now.
export class Plot {
  constructor(element, series, { sync } = {}) {
    this.element = element;
    this.series = series;
    this.sync = sync;
    this.chart = null;
    new ResizeObserver(() => this.chart?.setSize(this.#size())).observe(element);
    // A canvas does not follow CSS variables: made anew when the theme changes.
    new MutationObserver(() => this.#remake()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }

  draw() {
    const data = this.#data();
    if (data[0].length === 0) return;
    if (this.chart) this.chart.setData(data);
    else this.#make(data);
  }

  #data() {
    const steps = [...new Set(this.series.flatMap((one) => [...one.points.keys()]))].sort((a, b) => a - b);
    return [steps, ...this.series.map((one) => steps.map((step) => one.points.get(step) ?? null))];
  }

  #size() {
    const legend = this.series.length > 1 ? 26 : 0;
    const tall = this.element.classList.contains("tall");
    return { width: this.element.clientWidth, height: (tall ? 300 : 160) - legend };
  }

  #make(data) {
    const axis = { stroke: css("--muted"), grid: { stroke: css("--border"), width: 1 }, ticks: { show: false } };
    this.chart = new uPlot({
      ...this.#size(),
      scales: { x: { time: false } },
      cursor: { sync: this.sync ? { key: this.sync } : undefined, drag: { x: true, y: false } },
      legend: { show: this.series.length > 1 },
      axes: [
        { ...axis, size: 30, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 50000, 100000] },
        { ...axis, size: 64, values: (_, ticks) => ticks.map(short) },
      ],
      series: [
        { label: "step" },
        ...this.series.map((one, at) => ({
          label: one.name, stroke: css(COLOURS[at % COLOURS.length]), width: 1.5, dash: one.dash, spanGaps: true,
          value: (_, value) => short(value), points: { show: data[0].length < 40 },
        })),
      ],
    }, data, this.element);
  }

  #remake() {
    if (!this.chart) return;
    this.chart.destroy();
    this.chart = null;
    this.draw();
  }
}
