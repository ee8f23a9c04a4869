"""What recording costs, idle and at work, beside openadapt-capture on the same kind of display.

    python -m benchmarks.recorder [--seconds N] [--peer VENV]

A display of 1280x720 with openbox and two editors, a new one for each row; the hand types, clicks,
scrolls and moves, the same for all. Ours is measured alone, with a microphone that always hears a voice,
and with that and AT-SPI over two GTK editors. The peer records pictures, as ours does, and no video. CPU
is that of all processes of a recorder, as a share of one core; memory is the largest sum of their
proportional set sizes. A recorder that breaks gets a row that says so, and no numbers.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from benchmarks.recorder_desktop import Desktop, desktop

PEER = """\
--peer VENV is missing: no other recorder is measured. To make one (mss 10.2 can't open this display):
    python -m venv /tmp/openadapt && /tmp/openadapt/bin/pip install openadapt-capture==1.3.0 'mss<10.2'
    python -m benchmarks.recorder --peer /tmp/openadapt"""
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
                       Consent("1", 0.0), sys.argv[3] or None), Notices(trouble=print))
done.wait()
session.stop()
"""


class Cost(NamedTuple):
    """CPU as a share of one core, in percent, and memory in MiB."""

    cpu: float
    mib: float


class Broke(NamedTuple):
    """A recorder that ended by itself, and the last that it said."""

    cause: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="of idling, and of work")
    parser.add_argument("--peer", type=Path, help="virtual environment of openadapt-capture")
    options = parser.parse_args()
    ours = [sys.executable, "-c", _OURS]
    rows = [
        ("tandem-recorder", False, False),
        ("tandem-recorder, with sound", True, False),
        ("tandem-recorder, with sound and AT-SPI", True, True),
    ]
    if options.peer:
        rows.append(("openadapt-capture", False, False))
    else:
        print(PEER)
    print(
        f"aim: under {AIM_CPU:g} % of one core and {AIM_MIB:g} MiB; load {os.getloadavg()[0]:.1f}"
    )
    print("| recorder | CPU idle | CPU at work | memory idle | memory at work | written |")
    print("|---|---|---|---|---|---|", flush=True)
    found: dict[str, tuple[Cost, Cost] | Broke] = {}
    for who, sound, accessible in rows:
        with (
            tempfile.TemporaryDirectory() as name,
            desktop(Path(name), sound=sound, accessible=accessible) as place,
        ):
            target = Path(name) / "recording"
            argv = [*ours, place.name, str(target), "voice.monitor" if sound else ""]
            if who == "openadapt-capture":
                argv = [
                    str(options.peer / "bin" / "capture"), "record", str(target), "--video=False",
                    "--images=True", "--description=work",
                ]  # fmt: skip
            found[who] = measure(argv, place, options.seconds)
            print(_row(who, found[who], _bytes(target)), flush=True)
    alone, peer = found["tandem-recorder"], found.get("openadapt-capture")
    if not isinstance(alone, Broke) and peer is not None and not isinstance(peer, Broke):
        (idle, work), (idle2, work2) = alone, peer
        print(
            f"| ratio | {idle2.cpu / max(idle.cpu, 0.01):.1f}x | {work2.cpu / max(work.cpu, 0.01):.1f}x"
            f" | {idle2.mib / idle.mib:.1f}x | {work2.mib / work.mib:.1f}x | |"
        )


def _row(who: str, found: tuple[Cost, Cost] | Broke, written: int) -> str:
    if isinstance(found, Broke):
        return f"| {who} | broke: {found.cause} | | | | |"
    idle, work = found
    return (
        f"| {who} | {idle.cpu:.1f} % | {work.cpu:.1f} % | {idle.mib:.0f} MiB | {work.mib:.0f} MiB"
        f" | {written / 1e6:.1f} MB |"
    )


def measure(argv: Sequence[str], place: Desktop, seconds: float) -> tuple[Cost, Cost] | Broke:
    """Run a recorder; return what it costs while nobody acts, and while the hand works."""
    with tempfile.TemporaryFile() as said:
        recorder = subprocess.Popen(
            argv, env=place.environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            start_new_session=True,
        )  # fmt: skip
        try:
            time.sleep(8)  # until it has started
            idle = _cost(recorder.pid, lambda: time.sleep(seconds))
            work = _cost(recorder.pid, lambda: _work(place.name, seconds))
            if recorder.poll() is not None:
                return Broke(_last(said, recorder.returncode))
            return idle, work
        finally:
            _end(recorder)


def _last(said: IO[bytes], code: int) -> str:
    said.seek(0)
    lines = [line.strip() for line in said.read().decode(errors="replace").splitlines()]
    last = next((line for line in reversed(lines) if line), "it said nothing")
    return f"ended with {code}: {last[:160].replace('|', '/')}"


def _end(recorder: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        recorder.send_signal(signal.SIGINT)
    try:
        recorder.wait(60)
    except subprocess.TimeoutExpired:
        pass
    with suppress(ProcessLookupError):  # a broken one may leave its helpers
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


if __name__ == "__main__":
    main()
