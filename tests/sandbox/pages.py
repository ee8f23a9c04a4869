"""Pages for tests: a small server on this host, and a game that uses every way of telling time."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class _Pages(http.server.BaseHTTPRequestHandler):
    def __init__(self, pages: Mapping[str, str], *args: object) -> None:
        self.pages = pages
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        page = self.pages.get(self.path.partition("?")[0])
        self.send_response(200 if page is not None else 404)
        kind = "text/javascript" if self.path.endswith(".js") else "text/html"
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.end_headers()
        self.wfile.write((page or "not here").encode())

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def served(pages: Mapping[str, str]) -> Iterator[int]:
    """Serve {path: text} on a free port of this host and yield the port."""
    handler = functools.partial(_Pages, pages)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


GAME = """<!doctype html><title>dodge</title>
<style>@keyframes sweep { to { left: 100px } } #bar { position: absolute; animation: sweep 700ms infinite alternate }</style>
<canvas id="field" width="160" height="160"></canvas><div id="bar">-</div>
<script>
const world = { x: 80, v: 0, rocks: [], score: 0, hits: 0, ticks: 0, log: [] };
const keys = {};
addEventListener("keydown", (event) => { keys[event.key] = true; world.log.push(event.timeStamp); });
addEventListener("keyup", (event) => { keys[event.key] = false; });
const worker = new Worker(URL.createObjectURL(new Blob([`
  let beat = 0; setInterval(() => postMessage(++beat), 130);`], { type: "text/javascript" })));
worker.onmessage = ({ data }) => { world.ticks = data; if (data % 3 === 0) drop(3); };
const drop = (speed) => world.rocks.push({ x: Math.random() * 160, y: 0, speed: speed * (1 + Math.random()) });
(function spawn() { drop(1); setTimeout(spawn, 120 + Math.random() * 200); })();
document.addEventListener("animationiteration", () => { world.v += Math.random() - 0.5; });
let last = performance.now();
requestAnimationFrame(function frame(time) {
  const dt = (time - last) / 16; last = time;
  world.v += ((keys.ArrowRight ? 1 : 0) - (keys.ArrowLeft ? 1 : 0)) * 0.3 * dt;
  world.v *= 0.97; world.x = Math.min(160, Math.max(0, world.x + world.v * dt));
  for (const rock of world.rocks) {
    rock.y += rock.speed * dt;
    if (rock.y > 150 && Math.abs(rock.x - world.x) < 12) world.hits += 1;
  }
  world.score += world.rocks.filter((rock) => rock.y > 160).length;
  world.rocks = world.rocks.filter((rock) => rock.y <= 160);
  const pen = field.getContext("2d");
  pen.clearRect(0, 0, 160, 160);
  for (const { x, y } of world.rocks) pen.fillRect(x, y, 4, 4);
  pen.fillRect(world.x - 8, 152, 16, 6);
  requestAnimationFrame(frame);
});
</script>"""
