"""Our browser pages beside Farama's miniwob and browsergym-miniwob: same tasks, same run.

`python -m benchmarks.browser [--quick] [--rounds N]`. Needs chromium-headless-shell and, for Farama,
Debian's chromium-driver; the peers are installed into var/peers on first use. Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any

from benchmarks.peers import setup
from sandbox.providers.browser.process import pss, tree

TASKS = ("click-button", "enter-text", "book-flight", "use-autocomplete")
PARALLEL = (1, 2, 4)
PEERS = ("farama", "browsergym")
OURS = {"tandem": "bare", "tandem, full": "full", "tandem, elements": "elements"}
ROOT = setup.FOLDER.parents[1]
START_LIMIT_S = 90
# Past the time it was told to run: the last episode of four BrowserGyms takes seconds.
RUN_SLACK_S = 60

CAVEATS = """
One episode = 1 reset and 6 steps (3 clicks at (5, 5), 3 waits). steps/s counts whole wall time, resets
included; ms are medians; MiB is the proportional set size per environment, driver and browsers
together. Rows of one round ran one after the other in shuffled order. All drive the same
chromium-headless-shell without a display's refresh; BrowserGym's slow_mo and observation delay are 0.
The work is not the same:
- Farama returns the utterance, the whole DOM, the reward and a decoded 160x210 picture, in several
  round trips; it keeps its page.
- BrowserGym also returns the accessibility tree, a DOM snapshot and properties of elements, with a
  498x321 picture, and opens a new browser, context and chat window on each reset.
- tandem returns utterance, reward, done and a 160x210 PNG, not decoded; it keeps its page between
  episodes, as Farama does. "full" adds what Farama returns: the whole DOM by the same script and the
  decoded picture. "elements" adds the visible elements with roles, names and boxes.
- tandem asks for its frames (begin-frame control), the peers wait for theirs.
- tandem runs all environments from one driver process, with as many browsers as there are cores (at most
  one per environment) and a thread per page; the peers run a driver process and browsers for each, as
  they are made to.
"""


class Overdue(Exception):
    """A driver did not answer within its limit."""


class Driver:
    """One driver process and all it starts."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        self.errors: list[str] = []
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors = [*self.errors[-19:], line]

    def line(self, limit_s: float) -> str:
        """Return the next line the driver prints; raises Overdue with the end of its errors."""
        assert self.process.stdout is not None
        timer = threading.Timer(limit_s, self.end)
        timer.start()
        try:
            text = self.process.stdout.readline()
        finally:
            timer.cancel()
        if not text:
            raise Overdue("".join(self.errors)[-600:] or f"no answer for {limit_s} s")
        return text

    def tell(self, text: str) -> None:
        """Send one line."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()

    def memory_mb(self) -> float:
        """Return what the driver and all its children weigh, in MiB."""
        return sum(pss(pid) for pid in tree(self.process.pid)) / 2**20

    def end(self) -> None:
        """Kill the driver and everything below it."""
        for pid in reversed(tree(self.process.pid)):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def commands(system: str, task: str, parallel: int) -> list[list[str]]:
    """Return the command lines of the drivers that make `parallel` environments."""
    if system in PEERS:
        script = str(setup.FOLDER.parents[1] / "benchmarks" / "peers" / f"{system}.py")
        return [[str(setup.python()), script, task]] * parallel
    module = [sys.executable, "-m", "benchmarks.peers.tandem"]
    return [[*module, task, str(parallel), OURS[system]]]


def measure(system: str, task: str, parallel: int, seconds: float) -> dict[str, Any]:
    """Run `parallel` environments at once; return steps_s, reset_ms, click_ms, wait_ms, mb."""
    env = setup.environment()
    drivers = [Driver(command, env) for command in commands(system, task, parallel)]
    try:
        for driver in drivers:
            driver.line(START_LIMIT_S)
        for driver in drivers:
            driver.tell(str(seconds))
        found = [json.loads(driver.line(seconds + RUN_SLACK_S)) for driver in drivers]
        memory = sum(driver.memory_mb() for driver in drivers)
    finally:
        for driver in drivers:
            driver.end()
    middle = {key: statistics.median(one[key] for one in found) for key in found[0]}
    return {
        "steps_s": sum(one["steps"] / one["seconds"] for one in found),
        "mb": memory / parallel,
        **{key: middle[key] for key in ("reset_ms", "click_ms", "wait_ms")},
    }


def plan(quick: bool) -> list[tuple[str, int, str]]:
    """Return every (task, parallel, system) to measure in one round."""
    rows = []
    for task in TASKS[:1] if quick else TASKS:
        for parallel in PARALLEL:
            for system in (*PEERS, *OURS):
                if task == TASKS[0] or system != "tandem, elements":
                    rows.append((task, parallel, system))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="click-button only, 3 s a row")
    parser.add_argument("--rounds", type=int, default=1)
    chosen = parser.parse_args()
    seconds = 3.0 if chosen.quick else 6.0
    results: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    rows = plan(chosen.quick)
    for number in range(chosen.rounds):
        for row in random.Random(number).sample(rows, len(rows)):
            try:
                figures = measure(row[2], row[0], row[1], seconds)
            except Overdue as error:
                print(f"{row}: {error}", file=sys.stderr)
                continue
            print(f"{row}: {figures['steps_s']:.1f} steps/s", file=sys.stderr)
            results.setdefault(row, []).append(figures)
    show(rows, results)


def show(
    rows: list[tuple[str, int, str]], results: dict[tuple[str, int, str], list[dict[str, Any]]]
) -> None:
    """Print the table, ours as a multiple of the best peer, and what differs."""
    print(
        "| task | n | system | steps/s | reset ms | click ms | wait ms | MiB per env | x best peer |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for task, parallel, system in rows:
        found = results.get((task, parallel, system))
        if not found:
            print(f"| {task} | {parallel} | {system} | failed | | | | | |")
            continue
        mine = {key: statistics.median(one[key] for one in found) for key in found[0]}
        peers = [
            statistics.median(one["steps_s"] for one in results[task, parallel, peer])
            for peer in PEERS
            if (task, parallel, peer) in results
        ]
        ratio = f"{mine['steps_s'] / max(peers):.1f}" if peers and system in OURS else ""
        print(
            f"| {task} | {parallel} | {system} | {mine['steps_s']:.1f} | {mine['reset_ms']:.1f} | "
            f"{mine['click_ms']:.1f} | {mine['wait_ms']:.1f} | {mine['mb']:.0f} | {ratio} |"
        )
    print(CAVEATS)


if __name__ == "__main__":
    main()
