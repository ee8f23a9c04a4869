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

function watch(page) {
  const names = ["loss", "lr", "grad_norm"];
  const points = Object.fromEntries(names.map((name) => [name, new Map()]));
  const plots = names.map((name) => new Plot(
    document.getElementById(`plot-${name}`), [{ name, points: points[name] }], { sync: "run" }));
  let stamp = page.dataset.stamp;
  follow(page.dataset.metrics, (news) => {
    for (const point of news.points) {
      for (const name of names) points[name].set(point.step, point[name] ?? null);
    }
    if (points.loss.size) document.getElementById("no-points").hidden = true;
    for (const plot of plots) plot.draw();
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
    for (const name of names) say(name, short(news.latest[name]));
    say("tokens_per_s", short(news.latest.tokens_per_s));
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

function compare(page) {
  const runs = [...page.querySelectorAll("[data-run]")];
  const series = runs.map((run) => ({ name: run.dataset.name, points: new Map() }));
  const plot = new Plot(document.getElementById("plot-compare"), series);
  runs.forEach((run, at) => follow(run.dataset.metrics, (news) => {
    for (const point of news.points) series[at].points.set(point.step, point.loss ?? null);
    if (news.points.length) plot.draw();
  }));
}

for (const button of document.querySelectorAll("[data-preset]")) {
  button.addEventListener("click", () => {
    const values = JSON.parse(document.getElementById(button.dataset.preset).textContent);
    for (const [name, value] of Object.entries(values)) document.getElementById(`id_${name}`).value = value;
  });
}

const page = document.getElementById("run");
if (page) watch(page);
const comparison = document.getElementById("compare");
if (comparison) compare(comparison);
