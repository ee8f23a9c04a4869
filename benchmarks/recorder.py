"""What recording costs, idle and at work, beside openadapt-capture on the same display.

`python -m benchmarks.recorder [--seconds N] [--peer VENV]`. VENV is a virtual environment that holds
openadapt-capture (`pip install openadapt-capture`); it records pictures, as ours does, and no video.
A display of 1280x720 with openbox and two editors; the hand types, clicks, scrolls and moves, the
same for both. CPU is that of all processes of a recorder, as a share of one core; memory is the
largest sum of their proportional set sizes.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

AIM_CPU, AIM_MIB = 5.0, 150.0
_TICK = os.sysconf("SC_CLK_TCK")
_OURS = """
import signal, sys, threading
from pathlib import Path
import recorder.cli
from recorder.session import Notices, Session, Wish
from recorder.spool import Consent, Task
done = threading.Event()
signal.signal(signal.SIGINT, lambda *_: done.set())
session = Session(Wish(sys.argv[1], Path(sys.argv[2]), Task("", "", ""), "demonstration",
                       Consent("1", 0.0), None), Notices(trouble=print))
done.wait()
session.stop()
"""


class Cost(NamedTuple):
    """CPU as a share of one core, in percent, and memory in MiB."""

    cpu: float
    mib: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of idling, and of work")
    parser.add_argument("--peer", type=Path, help="virtual environment of openadapt-capture")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, desktop() as name:
        commands = {"tandem-recorder": [sys.executable, "-c", _OURS, name, f"{folder}/ours"]}
        if options.peer:
            commands["openadapt-capture"] = [
                str(options.peer / "bin" / "capture"), "record", f"{folder}/peer", "--video=False",
                "--images=True", "--description=work",
            ]  # fmt: skip
        found = {who: measure(argv, name, options.seconds) for who, argv in commands.items()}
        written = {who: _bytes(Path(folder) / sub) for who, sub in zip(found, ("ours", "peer"))}  # noqa: B905
    print(
        f"aim: under {AIM_CPU:g} % of one core and {AIM_MIB:g} MiB; load {os.getloadavg()[0]:.1f}"
    )
    print(
        f"{'recorder':20} {'idle CPU':>9} {'work CPU':>9} {'idle MiB':>9} {'work MiB':>9} {'MB':>7}"
    )
    for who, (idle, work) in found.items():
        print(
            f"{who:20} {idle.cpu:8.2f}% {work.cpu:8.2f}% {idle.mib:9.1f} {work.mib:9.1f}"
            f" {written[who] / 1e6:7.1f}"
        )
    if len(found) == 2:
        (idle, work), (idle2, work2) = found.values()
        print(
            f"{'ratio peer / ours':20} {idle2.cpu / max(idle.cpu, 0.01):8.1f}x"
            f" {work2.cpu / max(work.cpu, 0.01):8.1f}x {idle2.mib / idle.mib:8.1f}x"
            f" {work2.mib / work.mib:8.1f}x"
        )


def measure(argv: Sequence[str], name: str, seconds: float) -> tuple[Cost, Cost]:
    """Run a recorder; return what it costs while nobody acts, and while the hand works."""
    recorder = subprocess.Popen(
        argv, env={**os.environ, "DISPLAY": name}, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        time.sleep(8)  # until it has started
        if recorder.poll() is not None:
            raise SystemExit(f"{argv[0]} ended with {recorder.returncode}")
        idle = _cost(recorder.pid, lambda: time.sleep(seconds))
        work = _cost(recorder.pid, lambda: _work(name, seconds))
        return idle, work
    finally:
        recorder.send_signal(signal.SIGINT)
        try:
            recorder.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(recorder.pid, signal.SIGKILL)
            recorder.wait()


def _cost(pid: int, act: object) -> Cost:
    before, began = _ticks(pid), time.monotonic()
    act()  # type: ignore[operator]
    spent = sum(max(0, n - before.get(p, 0)) for p, n in _ticks(pid).items()) / _TICK
    return Cost(100 * spent / (time.monotonic() - began), _memory(pid) / 2**20)


def _work(name: str, seconds: float) -> None:
    """About a sentence, a click, a scroll and a way of the pointer every four seconds."""
    end = time.monotonic() + seconds
    turn = 0
    while time.monotonic() < end:
        turn += 1
        left = 200 + 500 * (turn % 2)
        words: list[str] = []
        for step in range(30):
            words += ["mousemove", str(left + step * 5), str(200 + step * 4), "sleep", "0.02"]
        words += ["click", "1", "sleep", "0.3", "click", "4", "click", "5", "sleep", "0.3"]
        words += ["type", "--delay", "120", f"line {turn} of work"]
        subprocess.run(["xdotool", *words], env={**os.environ, "DISPLAY": name}, check=True)
        time.sleep(0.7)


def _family(pid: int) -> set[int]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    found, waiting = set(), [pid]
    while waiting:
        found.add(one := waiting.pop())
        waiting += children.get(one, [])
    return found


def _ticks(pid: int) -> dict[int, int]:
    ticks = {}
    for one in _family(pid):
        with suppress(OSError, IndexError):
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            ticks[one] = int(fields[11]) + int(fields[12])
    return ticks


def _memory(pid: int) -> int:
    total = 0
    for one in _family(pid):
        with suppress(OSError):
            for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@contextmanager
def desktop() -> Iterator[str]:
    """An Xvnc of 1280x720 with openbox and two xterms; gives the display's name."""
    read, write = os.pipe()
    server = subprocess.Popen(
        [
            *("Xvnc", "-displayfd", str(write), "-geometry", "1280x720", "-depth", "24"),
            *("-rfbport", "-1", "-SecurityTypes", "None", "-nolisten", "tcp", "-s", "0"),
            # mss, which the peer uses, finds no visual among those of GLX.
            *("-extension", "GLX"),
        ],
        pass_fds=[write], stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(write)
    with os.fdopen(read) as told:
        name = f":{told.readline().strip()}"
    environment = {**os.environ, "DISPLAY": name}
    started = [subprocess.Popen(["openbox"], env=environment)]
    time.sleep(2)
    for place in ("+50+50", "+650+50"):
        command = ["xterm", "-bc", "-geometry", f"95x45{place}", "-e", "cat"]
        started.append(subprocess.Popen(command, env=environment))
    try:
        yield name
    finally:
        for process in (*started, server):
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
