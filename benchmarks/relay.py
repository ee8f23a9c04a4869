"""Our relay beside websockify: the same desktops, the same client, in shuffled rounds of one run.

`python -m benchmarks.relay [--rounds N]`. Needs Xvnc and websockify; no database: the relay is the
real one, with a gate whose tickets lie in memory. Prints medians over the rounds, as Markdown.
"""

from __future__ import annotations

import argparse
import os
import random
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from benchmarks.screen_client import Client

BULK_MIB = 128
PINGS = 2000
SMALL = 20_000
FRAMES = 40
REST_S = 0.1
WIDTH, HEIGHT = 1280, 720
TICKS = os.sysconf("SC_CLK_TCK")

POINTER = struct.pack(">BBHH", 5, 0, 640, 360)
ASK = struct.pack(">BBHHHH", 3, 0, 0, 0, 1, 1)
ANSWER = 32
BULK = struct.pack(">BBHHHH", 150, 1, 0, 0, BULK_MIB, 1)
RAW_ONLY = struct.pack(">BxHi", 2, 1, 0)
WHOLE_FRAME = struct.pack(">BBHHHH", 3, 0, 0, 0, WIDTH, HEIGHT)

WAYS = ("direct", "websockify", "relay, view only", "relay, control", "relay, control + capture")
TOKENS = {
    "relay, view only": "view",
    "relay, control": "control",
    "relay, control + capture": "capture",
}


class Way:
    """One way to a desktop, and the process whose CPU it costs."""

    def __init__(self, name: str, desktop: str, port: int, pid: int) -> None:
        self.name, self.desktop, self.port, self.pid = name, desktop, port, pid

    def open(self) -> Client:
        """Return a client that is past the handshake."""
        if self.name == "direct":
            client = Client.direct(self.desktop)
        elif self.name == "websockify":
            client = Client.websocket(self.port, "binary")
        else:
            client = Client.websocket(self.port, f"binary, ticket.{TOKENS[self.name]}")
        client.shake_hands()
        return client

    def cpu_s(self) -> float:
        """Return the CPU that the relay's processes have used, in seconds."""
        return tree_cpu_s(self.pid) if self.pid else 0.0


Figures = dict[str, float]


def measure_protocol(way: Way) -> Figures:
    """Bulk, round trips and small messages against the desktop that is all protocol."""
    figures: Figures = {}
    client = way.open()
    client.send(ASK)
    client.skip(ANSWER)
    rest(way)
    cpu, began = way.cpu_s(), time.perf_counter()
    client.send(BULK)
    client.skip(BULK_MIB << 20)
    took = time.perf_counter() - began
    megabytes = (BULK_MIB << 20) / 1e6
    figures["MB/s"] = megabytes / took
    figures["CPU ms/MB"] = (way.cpu_s() - cpu) * 1000 / megabytes

    rest(way)
    trips = []
    cpu = way.cpu_s()
    for _ in range(PINGS):
        began = time.perf_counter()
        client.send(ASK)
        client.skip(ANSWER)
        trips.append(time.perf_counter() - began)
    figures["CPU ms/1000 trips"] = (way.cpu_s() - cpu) * 1e6 / PINGS
    trips.sort()
    figures["p50 us"] = trips[len(trips) // 2] * 1e6
    figures["p99 us"] = trips[len(trips) * 99 // 100] * 1e6

    rest(way)
    cpu = way.cpu_s()
    frame = client.frame(POINTER)
    for _ in range(SMALL):
        client.send_framed(frame)
    client.send(ASK)
    client.skip(ANSWER)
    figures["CPU ms/1000 pointer events"] = (way.cpu_s() - cpu) * 1e6 / SMALL
    client.close()
    return figures


def measure_xvnc(way: Way) -> Figures:
    """Whole frames of a real desktop, unencoded, one after another."""
    client = way.open()
    client.send(RAW_ONLY)
    read_update(client, WHOLE_FRAME)
    rest(way)
    cpu, began = way.cpu_s(), time.perf_counter()
    size = sum(read_update(client, WHOLE_FRAME) for _ in range(FRAMES))
    took = time.perf_counter() - began
    figures = {
        "Xvnc MB/s": size / 1e6 / took,
        "Xvnc CPU ms/MB": (way.cpu_s() - cpu) * 1000 / (size / 1e6),
    }
    client.close()
    return figures


def read_update(client: Client, ask: bytes) -> int:
    """Ask for an update and read it; return its size in bytes."""
    client.send(ask)
    (rectangles,) = struct.unpack(">xxH", client.read(4))
    size = 4
    for _ in range(rectangles):
        _x, _y, width, height, encoding = struct.unpack(">HHHHi", client.read(12))
        if encoding != 0:
            raise ConnectionError(f"encoding {encoding} though only raw was asked for")
        client.skip(4 * width * height)
        size += 12 + 4 * width * height
    return size


def rest(way: Way) -> None:
    """Wait until the relay's processes are idle, and long enough that every way starts rested.

    On a busy machine the scheduler favours who has slept: without the pause a way would pay for
    the one before it.
    """
    before = -1.0
    while (now := way.cpu_s()) != before:
        before = now
        time.sleep(REST_S)


# -- processes ---------------------------------------------------------------------------------------


@contextmanager
def child(*command: str, ready: Path | int, log: Path) -> Iterator[int]:
    """Run a process until the block ends; `ready` is the socket or port that says it is there."""
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + 20
        while not is_there(ready):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} did not start:\n{log.read_text()[-2000:]}")
            time.sleep(0.02)
        yield process.pid
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()


def is_there(ready: Path | int) -> bool:
    if isinstance(ready, Path):
        return ready.exists()
    with suppress(OSError), socket.create_connection(("127.0.0.1", ready), 1):
        return True
    return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def tree_cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process, its living descendants and those it has waited for."""
    children: dict[int, list[int]] = {}
    used: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(entry.name))
                used[int(entry.name)] = sum(map(int, fields[11:15]))
    total, queue = 0, [pid]
    while queue:
        current = queue.pop()
        total += used.get(current, 0)
        queue += children.get(current, [])
    return total / TICKS


@contextmanager
def ways(desktop: Path, folder: Path) -> Iterator[list[Way]]:
    """Start both relays before one desktop."""
    name = desktop.stem
    with ExitStack() as stack:
        port = free_port()
        websockify = stack.enter_context(
            child(
                sys.executable, "-m", "websockify", f"127.0.0.1:{port}",
                f"--unix-target={desktop}", ready=port, log=folder / f"websockify-{name}.log",
            )
        )  # fmt: skip
        ours = free_port()
        relay = stack.enter_context(
            child(
                sys.executable, "-m", "benchmarks.relay_server", str(desktop), str(ours),
                ready=ours, log=folder / f"relay-{name}.log",
            )
        )  # fmt: skip
        ends = {"direct": (0, 0), "websockify": (port, websockify)}
        yield [Way(name, str(desktop), *ends.get(name, (ours, relay))) for name in WAYS]


def run(rounds: int) -> dict[str, dict[str, list[float]]]:
    """Return figures[way][what], one per round."""
    results: dict[str, dict[str, list[float]]] = {name: {} for name in WAYS}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="relay-bench-")))
        protocol, real = folder / "protocol.sock", folder / "xvnc.sock"
        stack.enter_context(
            child(
                sys.executable, "-m", "benchmarks.rfb_desktop", str(protocol),
                ready=protocol, log=folder / "protocol.log",
            )
        )  # fmt: skip
        stack.enter_context(
            child(
                "Xvnc", f":{free_display()}", "-geometry", f"{WIDTH}x{HEIGHT}", "-depth", "24",
                "-rfbport", "-1", "-rfbunixpath", str(real), "-SecurityTypes", "None",
                "-AlwaysShared", ready=real, log=folder / "xvnc.log",
            )
        )  # fmt: skip
        fast = stack.enter_context(ways(protocol, folder))
        slow = stack.enter_context(ways(real, folder))
        for number in range(rounds):
            for index in random.Random(number).sample(range(len(WAYS)), len(WAYS)):
                figures = measure_protocol(fast[index]) | measure_xvnc(slow[index])
                for what, value in figures.items():
                    results[WAYS[index]].setdefault(what, []).append(value)
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return results


def free_display() -> int:
    return next(n for n in range(200, 1000) if not Path(f"/tmp/.X{n}-lock").exists())


def table(results: dict[str, dict[str, list[float]]]) -> str:
    """Return the medians, and the ratios to websockify, as Markdown."""
    medians = {
        name: {what: statistics.median(values) for what, values in figures.items()}
        for name, figures in results.items()
    }
    what = list(medians["websockify"])
    lines = ["| | " + " | ".join(what) + " |", "|---" * (len(what) + 1) + "|"]
    for name in WAYS:
        lines.append(f"| {name} | " + " | ".join(f"{medians[name][w]:.4g}" for w in what) + " |")
    base = medians["websockify"]
    for name in TOKENS:
        ratios = (f"{medians[name][w] / base[w]:.2f}x" if base[w] else "-" for w in what)
        lines.append(f"| {name} / websockify | " + " | ".join(ratios) + " |")
    direct = medians["direct"]
    lines.append("")
    for name in WAYS[1:]:
        added = {p: medians[name][p] - direct[p] for p in ("p50 us", "p99 us")}
        lines.append(f"- {name}: adds {added['p50 us']:.0f} us p50, {added['p99 us']:.0f} us p99")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    print(table(run(parser.parse_args().rounds)))
