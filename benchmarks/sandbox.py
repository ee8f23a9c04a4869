"""What each kind of computer costs: `python -m benchmarks.sandbox [--provider local qemu ...]`.

Generic over `sandbox.provider`: every line is measured through the public protocol, with what the
provider has (`sandbox.capabilities`). Prints one Markdown table for each provider, with the aim or
the peer's number beside it, and the load of the machine before and after.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from PIL import Image

from sandbox.capabilities import Snapshots
from sandbox.desktop.wire import Wire
from sandbox.provider import (
    ActionFailed,
    Desktop,
    DesktopLost,
    Handle,
    Provider,
    SandboxError,
    SandboxSpec,
)
from sandbox.providers import NAMES, load
from trajectory import Click, Type

KEYS = 10
_CHANGE_S = 20.0
AIMS = {
    ("local", "reset"): "aim 700",
    ("qemu", "start to first picture"): "aim 200; peer: Firecracker <= 125 to init, no screen",
    ("qemu", "restore"): "aim 600",
    ("local", "picture, unchanged"): "aim 5 encoded",
    ("", "cold start, ready for its holder"): "peer: E2B resumes in 442 (p50)",
    ("", "warm claim"): "aim 100; peer: Daytona 663 (p50)",
    ("", "restore"): "peer: KubeVirt recreates in 12,000 to 40,000",
    ("", "reset"): "peer: OSWorld boots anew, minutes",
    ("", "exec"): "peer: one HTTP round trip",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: `times` in ms, or a value in words."""

    what: str
    times: tuple[float, ...] = ()
    said: str = ""


class Bench:
    """Measures one provider; `rounds` repetitions of what is slow, more of what is fast."""

    def __init__(self, provider: Provider, spec: SandboxSpec, rounds: int) -> None:
        self.provider = provider
        self.spec = spec
        self.rounds = rounds
        self._ids = 0

    def lines(self) -> Iterator[Line]:
        """Yield each line as it is measured; what a kind can't do is a line that says so."""
        yield from self._starts()
        with self._running() as handle:
            desktop = self.provider.connect(handle)
            try:
                yield self._times("warm claim", 5 * self.rounds, lambda: self._claim(handle))
                yield from self._work(desktop)
                yield Line("memory, MiB PSS", said=f"{_pss(handle) / 1024:.0f}")
            finally:
                desktop.close()
        if isinstance(self.provider, Snapshots):
            yield from self._snapshots(self.provider)

    def many(self, count: int) -> Iterator[Line]:
        """Hold `count` computers at once, each of which answers with a picture."""
        handles: list[Handle] = []
        started = time.monotonic()
        try:
            for number in range(count):
                handles.append(self.provider.start(_named(self.spec, f"many{number}")))
            took = time.monotonic() - started
            seen = sum(self._looks(handle) for handle in handles)
            total = sum(map(_pss, handles)) / 1024
            yield Line(f"{count} at once", said=f"{seen} show a picture, started in {took:.0f} s")
            yield Line("memory of all, MiB PSS", said=f"{total:.0f} ({total / count:.0f} each)")
        finally:
            for handle in handles:
                self.provider.stop(handle)

    # -- the parts -------------------------------------------------------------------------------

    def _starts(self) -> Iterator[Line]:
        cold, first, resets = [], [], []
        handle = self.provider.start(_named(self.spec, "warmup"))  # templates, page cache
        for _ in range(self.rounds):
            begin = time.monotonic()
            self.provider.stop(handle)
            stopped = time.monotonic()
            with ThreadPoolExecutor(1) as starter:
                spec = _named(self.spec, "warmup")
                starting = starter.submit(self.provider.start, spec)
                self._first_picture(spec.name, starting)
                first.append(1000 * (time.monotonic() - stopped))
                handle = starting.result()
            up = time.monotonic()
            cold.append(1000 * (up - stopped))
            resets.append(1000 * (up - begin))
        self.provider.stop(handle)
        yield Line("cold start, ready for its holder", tuple(cold))
        yield Line("start to first picture", tuple(first))
        yield Line("reset", tuple(resets))

    def _first_picture(self, name: str, starting: Future[Handle]) -> None:
        """Return once a computer that is being started has shown a picture; raises what start does.

        The picture alone is asked for: a computer may show it before it lets anybody do anything.
        """
        while not starting.done():
            for handle in self.provider.running():
                if handle.name == name and _shows(handle):
                    return
            time.sleep(0.005)
        self._looks(starting.result())

    def _work(self, desktop: Desktop) -> Iterator[Line]:
        # Encoded is only what changed: "key to changed picture" below holds a fresh one.
        yield self._times("picture, unchanged", 10 * self.rounds, desktop.observe)
        try:
            epoch = int(str(desktop.health()["epoch"]))

            def run() -> None:
                desktop.shell("true", epoch=epoch, action_id=self._id())

            yield self._times("exec", 5 * self.rounds, run)
            yield self._times("key to changed picture", KEYS, self._typing(desktop))
        except ActionFailed as error:
            yield Line("exec", said=f"none: {error}")

    def _snapshots(self, provider: Snapshots) -> Iterator[Line]:
        with self._running() as handle:
            keep, back = [], []
            for number in range(self.rounds):
                begin = time.monotonic()
                provider.snapshot(handle, f"s{number}")
                kept = time.monotonic()
                handle = provider.restore(handle, f"s{number}")
                cold = time.monotonic()
                provider.forget(handle, f"s{number}")
                keep.append(1000 * (kept - begin))
                back.append(1000 * (cold - kept))
            yield Line("snapshot", tuple(keep))
            yield Line("restore", tuple(back))

    def _claim(self, handle: Handle) -> None:
        """What the host does to hand a ready computer out: connect, prove it, fence."""
        desktop = self.provider.connect(handle)
        desktop.fence(int(str(desktop.health()["epoch"])) + 1)
        desktop.close()

    def _looks(self, handle: Handle) -> bool:
        try:
            desktop = self.provider.connect(handle)
            try:
                with Image.open(BytesIO(desktop.observe().png)) as picture:
                    return picture.size == (self.spec.width, self.spec.height)
            finally:
                desktop.close()
        except DesktopLost:
            return False

    def _typing(self, desktop: Desktop) -> Callable[[], None]:
        """Open a terminal and return what types one key and waits for the picture to change."""
        epoch = int(str(desktop.health()["epoch"]))
        before = desktop.observe().png
        desktop.launch(["xterm", "-geometry", "60x10+20+20"], epoch=epoch, action_id=self._id())
        _until_changed(desktop, before)
        desktop.settle(quiet_ms=500, max_ms=15_000)
        desktop.perform(Click(200, 80), epoch=epoch, action_id=self._id())
        desktop.settle(quiet_ms=500, max_ms=15_000)

        def key() -> None:
            before = desktop.observe().png
            desktop.perform(Type("x"), epoch=epoch, action_id=self._id())
            _until_changed(desktop, before)

        return key

    def _times(self, what: str, count: int, work: Callable[[], object]) -> Line:
        times = []
        for _ in range(count):
            begin = time.monotonic()
            work()
            times.append(1000 * (time.monotonic() - begin))
        return Line(what, tuple(times))

    @contextmanager
    def _running(self) -> Iterator[Handle]:
        handle = self.provider.start(_named(self.spec, "bench"))
        try:
            yield handle
        finally:
            self.provider.stop(handle)

    def _id(self) -> str:
        self._ids += 1
        return f"bench-{os.getpid()}-{self._ids}"


def _shows(handle: Handle) -> bool:
    wire = Wire(handle, lambda: "")
    try:
        return bool(wire.ask("POST", "/v1/observe", {"elements": False})[1])
    except SandboxError:
        return False
    finally:
        wire.close()


def _until_changed(desktop: Desktop, before: bytes) -> None:
    deadline = time.monotonic() + _CHANGE_S
    while desktop.observe().png == before:
        if time.monotonic() > deadline:
            raise DesktopLost(f"the picture did not change within {_CHANGE_S:g} s")


def _named(spec: SandboxSpec, name: str) -> SandboxSpec:
    return SandboxSpec(
        f"{name}-{os.getpid()}", spec.image, spec.width, spec.height, spec.memory_mb, spec.cpus
    )


def _pss(handle: Handle) -> int:
    """Return the memory of a computer's processes in KiB: each shared page counts for its share."""
    total, todo = 0, [handle.pid]
    while todo:
        pid = todo.pop()
        try:
            for task in Path(f"/proc/{pid}/task").iterdir():
                todo += map(int, (task / "children").read_text().split())
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
        except (OSError, ValueError):
            continue  # it ended in between, or there is no such process here
    return total


def table(name: str, lines: Iterator[Line]) -> None:
    """Print the lines as a Markdown table as they come."""
    print(f"\n| {name}: ms | p50 | p95 | max | n | aim or peer |\n|---|---|---|---|---|---|")
    for line in lines:
        aim = AIMS.get((name, line.what)) or AIMS.get(("", line.what), "")
        if not line.times:
            print(f"| {line.what} | {line.said} | | | | {aim} |", flush=True)
            continue
        times = sorted(line.times)
        p50, p95 = statistics.median(times), times[min(len(times) - 1, int(0.95 * len(times)))]
        digits = 0 if p50 >= 100 else 1
        numbers = " | ".join(f"{value:.{digits}f}" for value in (p50, p95, times[-1]))
        print(f"| {line.what} | {numbers} | {len(times)} | {aim} |", flush=True)


def main() -> None:
    """Measure; exit status 1 if a provider could not be measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sandbox", description=__doc__)
    parser.add_argument("--provider", nargs="+", choices=NAMES, default=["local"])
    parser.add_argument("--rounds", type=int, default=5, help="starts, snapshots; the rest is more")
    parser.add_argument("--many", type=int, default=0, help="hold so many at once as well")
    parser.add_argument("--memory-mb", type=int, default=SandboxSpec("").memory_mb)
    options = parser.parse_args()
    spec = SandboxSpec("bench", memory_mb=options.memory_mb)
    failed = False
    print(f"load average {os.getloadavg()[0]:.1f} before, {os.cpu_count()} cores")
    for name in options.provider:
        with tempfile.TemporaryDirectory(prefix="tb-") as state:
            provider = load(name, state=Path(state))
            bench = Bench(provider, spec, options.rounds)
            try:
                table(name, bench.lines())
                if options.many:
                    table(name, bench.many(options.many))
            except SandboxError as error:
                failed = True
                print(f"\n{name}: {type(error).__name__}: {error}", file=sys.stderr)
            finally:
                for handle in provider.running():
                    provider.stop(handle)
    print(f"\nload average {os.getloadavg()[0]:.1f} after")
    sys.exit(failed)


if __name__ == "__main__":
    main()
