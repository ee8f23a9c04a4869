"""Game time per second of the wall under our clock, beside Playwright's, in one run.

`python -m benchmarks.clock [--seconds N]`. One page with an animation-frame game at 320x420, first
without looking at it, then with a picture after each step. Playwright drives the same programs with
its own page.clock.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sandbox.providers.browser import Fleet, PageSpec

WIDTH, HEIGHT = 320, 420
AIM_UNOBSERVED, AIM_OBSERVED = 100, 200
STEP_MS = 4 * 1000 / 60
"""Four frames of the game between two pictures, as an agent that plays would take."""

GAME = """<!doctype html><meta charset="utf-8"><title>game</title>
<style>body { margin: 0 }</style><canvas id="field" width="320" height="420"></canvas>
<script>
const balls = Array.from({ length: 12 }, (_, i) => ({ x: 20 + 23 * i, y: 40 + 17 * i, vx: 1 + i % 3, vy: 2 - i % 4 }));
const pen = field.getContext("2d");
const seen = { frames: 0, timers: 0 };
setInterval(() => { seen.timers += 1; }, 100);
requestAnimationFrame(function frame() {
  seen.frames += 1;
  pen.fillStyle = "#124"; pen.fillRect(0, 0, 320, 420);
  for (const ball of balls) {
    ball.x += ball.vx; ball.y += ball.vy;
    if (ball.x < 5 || ball.x > 315) ball.vx *= -1;
    if (ball.y < 5 || ball.y > 415) ball.vy *= -1;
    pen.fillStyle = "#fb3"; pen.beginPath(); pen.arc(ball.x, ball.y, 5, 0, 7); pen.fill();
  }
  requestAnimationFrame(frame);
});
</script>"""

CAVEATS = """
* One page of one browser; the game draws twelve balls and costs little. A heavier one is bound by itself.
* Unobserved: nothing is painted between steps. Observed: 4 frames of the game, then one picture of the page.
* Ours is headless-shell with frames on demand; Playwright can't ask for frames, so its pictures are
  page.screenshot (JPEG, quality 60: its fastest). Ours is measured with the same, and with PNG.
* Playwright's clock does not stop CSS animations, workers or media; ours does (see the self-test).
* Medians of rounds on this machine; read ratios rather than figures when it is busy."""

PROGRAMS = {
    "headless-shell": "/usr/bin/chromium-headless-shell",
    "chromium": "/usr/bin/chromium",
}


def timed(seconds: float, advance: Callable[[], float]) -> tuple[float, float]:
    """Call `advance`, which returns ms of game time, for `seconds`.

    Returns (game-seconds per wall-second, calls per second), medians over five rounds.
    """
    advance()
    game, calls = [], []
    for _ in range(5):
        began, passed, count = time.perf_counter(), 0.0, 0
        while time.perf_counter() - began < seconds / 5:
            passed += advance()
            count += 1
        wall = time.perf_counter() - began
        game.append(passed / 1000 / wall)
        calls.append(count / wall)
    return statistics.median(game), statistics.median(calls)


def ours(url: str, seconds: float, *, jpeg: int) -> tuple[float, float, float, str]:
    with Fleet(browsers=1) as fleet:
        page = fleet.open(PageSpec(width=WIDTH, height=HEIGHT, clock=True, seed=1))
        page.navigate(url)
        clock = page.clock
        assert clock is not None

        def step(ms: float) -> float:
            clock.step(ms)
            return ms

        def look() -> float:
            clock.step(STEP_MS)
            assert page.target.frame(picture=True, jpeg=jpeg)
            return STEP_MS

        free, _ = timed(seconds, lambda: step(5000))
        seen, pictures = timed(seconds, look)
        state = clock.state()
        frames = page.evaluate("seen.frames")
        assert abs(state.frames - int(str(frames))) <= 1, "the game has missed frames"
        agent = str(page.evaluate("navigator.userAgent"))
        page.close()
    return free, seen, pictures, agent.split("Chrome/")[-1].split(" ")[0]


def playwright(url: str, seconds: float, program: str) -> tuple[float, float, float]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = play.chromium.launch(executable_path=program, args=sandbox)
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.clock.install(time=0)
        page.goto(url)
        page.clock.pause_at(1000)

        def step(ms: float) -> float:
            page.clock.run_for(ms)
            return ms

        def look() -> float:
            page.clock.run_for(round(STEP_MS))
            page.screenshot(type="jpeg", quality=60)
            return round(STEP_MS)

        free, _ = timed(seconds, lambda: step(5000))
        seen, pictures = timed(seconds, look)
        browser.close()
    return free, seen, pictures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="for each figure (default 10)")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory(prefix="tandem-clock-") as folder:
        file = Path(folder) / "game.html"
        file.write_text(GAME)
        url = file.as_uri()
        *png, _ = ours(url, seconds, jpeg=0)
        free, seen, pictures, version = ours(url, seconds, jpeg=60)
        rows = [
            ("ours, headless-shell, JPEG", free, seen, pictures),
            ("ours, headless-shell, PNG", *png),
        ]
        peers = []
        for name, program in PROGRAMS.items():
            if not Path(program).exists():
                print(f"{name} is not installed: left out")
                continue
            peers.append(playwright(url, seconds, program))
            rows.append((f"Playwright, {name}", *peers[-1]))
    print(f"Chromium {version}, {os.cpu_count()} cores, {platform.machine()}; load {_load()}\n")
    print("| clock | unobserved game-s/s | observed game-s/s | pictures/s |\n|---|---|---|---|")
    for name, *figures in rows:
        print(f"| {name} | " + " | ".join(f"{figure:.1f}" for figure in figures) + " |")
    if peers:
        best = [max(column) for column in zip(*peers, strict=True)]
        print(f"\nratio to the better peer: {free / best[0]:.1f} unobserved, "
              f"{seen / best[1]:.1f} observed")  # fmt: skip
    for name, value, aim in (
        ("game-s/s unobserved", free, AIM_UNOBSERVED), ("pictures/s", pictures, AIM_OBSERVED),
    ):  # fmt: skip
        print(f"{name}: {value:.0f}, aim {aim}: {'reached' if value >= aim else 'NOT reached'}")
    print(CAVEATS)


def _load() -> str:
    with suppress(OSError):
        return f"{os.getloadavg()[0]:.1f}"
    return "unknown"


if __name__ == "__main__":
    main()
