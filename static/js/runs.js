// A run's page and the comparison: asks metrics.json for what is new until every run has ended.
import { Plot, short } from "./plots.js";

const POLL_MS = 1500;
const LONGEST_WAIT_MS = 15000;

// Calls `seen(answer)` with each new answer; waits longer while the server does not answer.
async function follow(url, seen) {
  let after = -1;
  let wait = POLL_MS;
  for (;;) {
    try {
      const answer = await fetch(after < 0 ? url : `${url}?after=${after}`, { headers: { accept: "application/json" } });
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      const news = await answer.json();
      if (news.points.length) after = news.points.at(-1).step;
      seen(news);
      if (news.more) continue;
      // A resumed run starts again; its page is loaded anew by the button.
      if (news.ended) return;
      wait = POLL_MS;
    } catch {
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    }
    await new Promise((done) => setTimeout(done, wait));
    if (document.hidden) await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
  }
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

const say = (id, text) => { document.getElementById(id).textContent = text; };

// The two switches above the plots; `log` is null until somebody touches it: each plot has its own.
function switches(changed) {
  const smooth = document.getElementById("smooth");
  const log = document.getElementById("log-scale");
  smooth?.addEventListener("input", () => changed({ weight: Number(smooth.value) }));
  log?.addEventListener("change", () => changed({ log: log.checked }));
}

// The plots of a page: each appears with its first number.
class Plots {
  constructor(described) {
    this.plots = described.map((one) => {
      const figure = document.querySelector(`[data-plot="${one.key}"]`);
      const series = one.series.map((line) => ({ key: line.key, name: line.label, points: new Map() }));
      return { figure, series, log: one.log, drawn: null };
    });
    switches((settings) => {
      this.settings = { ...this.settings, ...settings };
      for (const plot of this.plots) plot.drawn?.change(settings);
    });
  }

  add(points) {
    for (const point of points) {
      for (const plot of this.plots) {
        for (const line of plot.series) {
          if (point[line.key] !== undefined) line.points.set(point.step, point[line.key]);
        }
      }
    }
    for (const plot of this.plots) this.#draw(plot);
  }

  #draw(plot) {
    const lines = plot.series.filter((line) => line.points.size);
    if (!lines.length) return;
    plot.figure.hidden = false;
    // A line that begins later needs a chart of more lines.
    if (plot.drawn && plot.drawn.series.length < lines.length) {
      plot.drawn.series = lines;
      plot.drawn.remake();
      return;
    }
    plot.drawn ??= Object.assign(
      new Plot(plot.figure.querySelector(".plot"), lines, { sync: "run", legend: true, log: plot.log }), this.settings);
    plot.drawn.draw();
  }
}

function watch(page) {
  const described = JSON.parse(document.getElementById("plots")?.textContent ?? "[]");
  const plots = new Plots(described);
  const figures = [...page.querySelectorAll("[data-latest]")];
  let stamp = page.dataset.stamp;
  follow(page.dataset.metrics, (news) => {
    plots.add(news.points);
    if (news.points.length) document.getElementById("no-points")?.setAttribute("hidden", "");
    const state = document.getElementById("state");
    if (state.textContent !== news.state) {
      state.textContent = news.state;
      state.className = `badge ${news.state}`;
    }
    const progress = document.getElementById("progress");
    progress.max = news.total || 1;
    progress.value = news.step;
    say("step", news.step);
    say("total", news.total || "–");
    for (const figure of figures) {
      // What is not measured at every step keeps its last value.
      const value = news.points.findLast((point) => point[figure.dataset.latest] !== undefined);
      const newest = news.latest[figure.dataset.latest] ?? value?.[figure.dataset.latest];
      if (newest !== undefined) figure.textContent = short(newest);
    }
    say("eta", news.ended ? "–" : duration(news.latest.eta_s));
    const log = document.getElementById("log");
    if (news.log && log.textContent !== news.log) {
      const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 30;
      log.textContent = news.log;
      if (atEnd) log.scrollTop = log.scrollHeight;
    }
    if (news.stamp !== stamp) {
      stamp = news.stamp;
      document.getElementById("panel").dispatchEvent(new Event("tandem:changed"));
    }
  });
}

// Seconds as 0:05 (minutes) or 2:03:00 (hours).
function clock(seconds) {
  const whole = Math.round(seconds);
  const two = (value) => String(value).padStart(2, "0");
  const minutes = Math.floor(whole / 60);
  return minutes < 60 ? `${minutes}:${two(whole % 60)}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(whole % 60)}`;
}

// Where each point of a run lies on the axis: its step, seconds since its first step, tokens so far.
function places(points, axis) {
  let tokens = 0;
  let seconds = 0;
  let before = null;
  return points.map((point) => {
    const passed = before === null || point.time === undefined ? 0 : Math.max(0, point.time - before);
    before = point.time ?? before;
    seconds += passed;
    tokens += point.tokens ?? (point.tokens_per_s ?? 0) * passed;
    return axis === "step" ? point.step : axis === "time" ? seconds : tokens;
  });
}

const AXES = {
  step: { label: "step", x: undefined, incrs: undefined },
  time: { label: "time", x: clock, incrs: [1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400, 604800] },
  tokens: { label: "tokens", incrs: Array.from({ length: 33 }, (_, n) => [1, 2, 5][n % 3] * 10 ** Math.floor(n / 3)), x: (value) => (value >= 1e6 ? `${+(value / 1e6).toPrecision(3)} M` : value >= 1e3 ? `${+(value / 1e3).toPrecision(3)} k` : String(Math.round(value))) },
};

function compare(page) {
  const metric = document.getElementById("metric");
  const axis = document.getElementById("axis");
  const runs = [...page.querySelectorAll("[data-run]")].map((run) => ({ name: run.dataset.name, url: run.dataset.metrics, known: [], points: new Map() }));
  const plot = new Plot(document.getElementById("plot-compare"), runs, { legend: true, ...AXES[axis.value] });
  const draw = () => {
    for (const run of runs) {
      const at = places(run.known, axis.value);
      run.points.clear();
      run.known.forEach((point, n) => {
        if (point[metric.value] !== undefined) run.points.set(at[n], point[metric.value]);
      });
    }
    const any = runs.some((run) => run.points.size);
    document.getElementById("no-points").hidden = any;
    plot.element.hidden = !any;
    if (any) plot.draw();
  };
  for (const select of [metric, axis]) {
    select.addEventListener("change", () => {
      const address = new URL(location);
      address.searchParams.set(select.name, select.value);
      history.replaceState(null, "", address);
      draw();
      plot.change(AXES[axis.value]);
    });
  }
  switches((settings) => plot.change(settings));
  for (const run of runs) {
    follow(run.url, (news) => {
      run.known.push(...news.points);
      if (news.points.length) draw();
    });
  }
}

for (const button of document.querySelectorAll("[data-preset]")) {
  button.addEventListener("click", (event) => {
    event.preventDefault();
    const values = JSON.parse(document.getElementById(button.dataset.preset).textContent);
    for (const [name, value] of Object.entries(values)) document.getElementById(`id_${name}`).value = value;
  });
}

const page = document.getElementById("run");
if (page) watch(page);
const comparison = document.getElementById("compare");
if (comparison) compare(comparison);
