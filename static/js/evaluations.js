// The curve of an evaluation, drawn anew with each panel that htmx brings; or those of two.
import { Plot } from "./plots.js";

const read = (id) => JSON.parse(document.getElementById(id)?.textContent ?? "[]");

// Success in percent by steps allowed, from [{steps, value, low, high}].
const part = (points, name) => new Map(points.map((point) => [point.steps, 100 * point[name]]));

const LINES = [
  { name: "success %", part: "value" },
  { name: "lower end of 95 %", part: "low", dash: [4, 4] },
  { name: "upper end of 95 %", part: "high", dash: [4, 4] },
];

function one(element) {
  const series = LINES.map((line) => ({ name: line.name, dash: line.dash, points: new Map() }));
  const plot = new Plot(element, series);
  const draw = () => {
    const points = read("curve-points");
    LINES.forEach((line, at) => { series[at].points = part(points, line.part); });
    plot.draw();
  };
  document.addEventListener("htmx:afterSettle", draw);
  draw();
}

function two(element) {
  const series = read("compare-points").map((curve) => ({ name: curve.name, points: part(curve.points, "value") }));
  new Plot(element, series).draw();
}

const element = document.getElementById("plot-curve");
if (element) (document.getElementById("compare-points") ? two : one)(element);
