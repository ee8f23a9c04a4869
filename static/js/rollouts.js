// A rollout's page: its plots; the figures beside them come by htmx.
import { Plot } from "./plots.js";

const POLL_MS = 5000;
const LONGEST_WAIT_MS = 30000;

async function watch(page) {
  const names = ["per_hour", "reward"];
  const points = Object.fromEntries(names.map((name) => [name, new Map()]));
  const plots = names.map((name) => new Plot(
    document.getElementById(`plot-${name}`), [{ name, points: points[name] }], { sync: "rollout" }));
  let wait = POLL_MS;
  for (;;) {
    try {
      const answer = await fetch(page.dataset.series, { headers: { accept: "application/json" } });
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      const news = await answer.json();
      for (const name of names) {
        // Their width grows with the run: what was drawn before may lie elsewhere now.
        points[name].clear();
        for (const point of news.points) points[name].set(point.minute, point[name]);
      }
      document.getElementById("no-points").hidden = news.points.length > 0;
      for (const plot of plots) plot.draw();
      if (news.ended) return;
      wait = POLL_MS;
    } catch {
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    }
    await new Promise((done) => setTimeout(done, wait));
    if (document.hidden) await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
  }
}

const page = document.getElementById("rollout");
if (page) watch(page);
