"""Kill everything while callers work: `python -m benchmarks.chaos [--minutes 10] [--provider qemu]`.

Real desktops, a real PostgreSQL, a sandbox host and callers as processes. At random moments one of them
dies by SIGKILL: the host, a guest, an X server (or QEMU), a caller, or the database connections. Then the
killing stops, and all must be accounted for: no action twice, none of another lease, none after the
lease's release, a cause for every end, computers and rows one to one, nothing left at the end. Exits
with 1 if not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.rollout_parts import database

CLIENTS, WARM, MOST = 2, 2, 3
SETTLE_S = 240.0
START_S = 300.0
KINDS = {
    "local": ("host", "guest", "X server", "caller", "database"),
    "qemu": ("host", "QEMU", "caller", "database"),
}
ROOT = Path(__file__).resolve().parents[1]


class Processes:
    """The host and the callers; whoever dies is started again."""

    def __init__(self, log: Path) -> None:
        self.log = log.open("a", buffering=1)
        self.lines: list[dict[str, Any]] = []
        self.since: dict[str, datetime] = {}
        self.host = self._start_host()
        self.callers = {f"caller-{n}": self._start_caller(f"caller-{n}") for n in range(CLIENTS)}

    def revive(self) -> None:
        if self.host.poll() is not None:
            self.host = self._start_host()
        for name, caller in self.callers.items():
            if caller.poll() is not None:
                self.callers[name] = self._start_caller(name)

    def end_callers(self) -> None:
        for caller in self.callers.values():
            caller.kill()
            caller.wait()

    def host_at_work(self) -> bool:
        from sandbox.models import Host

        return Host.objects.filter(last_seen__gt=self.since["host"]).exists()

    def caller_at_work(self, name: str) -> bool:
        from sandbox.models import Lease

        mine = Lease.objects.filter(idempotency_key__startswith=f"{name}-")
        return mine.filter(granted_at__gt=self.since[name]).exists()

    def _start_host(self) -> subprocess.Popen[str]:
        self.since["host"] = datetime.now(UTC)
        argv = [
            sys.executable, "manage.py", "sandbox_host", "--name", "chaos", "--slots", str(MOST),
            "--memory", "0", "--stop-desktops-on-exit",
        ]  # fmt: skip
        return subprocess.Popen(argv, cwd=ROOT, text=True, stdout=self.log, stderr=self.log)

    def _start_caller(self, name: str) -> subprocess.Popen[str]:
        self.since[name] = datetime.now(UTC)
        caller = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.chaos_client", name],
            cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=self.log,
        )  # fmt: skip
        threading.Thread(target=self._read, args=(caller,), daemon=True).start()
        return caller

    def _read(self, caller: subprocess.Popen[str]) -> None:
        assert caller.stdout is not None
        for line in caller.stdout:
            self.log.write(line)
            with suppress(ValueError):  # the last line of a killed one
                self.lines.append(json.loads(line))


def kill_one(kind: str, processes: Processes) -> bool:
    """Kill something of `kind` that is at work; False if there is none right now."""
    if kind == "host":
        working = processes.host_at_work()
        if working:
            processes.host.kill()
        return working
    if kind == "caller":
        working = [name for name in processes.callers if processes.caller_at_work(name)]
        if working:
            processes.callers[random.choice(working)].kill()
        return bool(working)
    if kind == "database":
        return cut_connections()
    found = victims(kind)
    if not found:
        return False
    row, pid = random.choice(found)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    said = {"killed": kind, "sandbox": row.name, "was": row.state, "boot_id": row.handle["boot_id"]}
    processes.lines.append(said)
    processes.log.write(json.dumps(said) + "\n")
    return True


def victims(kind: str) -> list[tuple[Any, int]]:
    """Return the processes of `kind` that carry a computer which is ready or leased, with its row."""
    from sandbox.models import Sandbox

    rows = Sandbox.objects.filter(state__in=(Sandbox.State.READY, Sandbox.State.LEASED))
    roots = {row.handle["pid"]: row for row in rows}
    if kind == "QEMU":
        return [(row, pid) for pid, row in roots.items() if b"qemu-system" in command(pid)]
    program, word = {"guest": (b"python", b"guest.boot"), "X server": (b"Xvnc", b"")}[kind]
    found = [(root, pid, command(pid).split(b"\0")) for pid, root in inside(set(roots))]
    return [
        (roots[root], pid)
        for root, pid, words in found
        if program in words[0].rpartition(b"/")[2] and (not word or word in words)
    ]


def cut_connections() -> bool:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname ="
            " current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        return bool(cursor.fetchone()[0])


def inside(roots: set[int]) -> list[tuple[int, int]]:
    """Return every descendant of a process in `roots`, as (pid, root)."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])

    def root_of(pid: int) -> int:
        while pid in parents and pid not in roots:
            pid = parents[pid]
        return pid

    return [(pid, root) for pid in parents if (root := root_of(pid)) in roots and root != pid]


def command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def make_chaos(
    processes: Processes, kinds: tuple[str, ...], seconds: float, every_s: float
) -> Counter[str]:
    """Kill for so long from the first lease on; return how often each kind died."""
    killed: Counter[str] = Counter()
    late = time.monotonic() + START_S
    while not any(processes.caller_at_work(name) for name in processes.callers):
        if time.monotonic() > late:
            raise SystemExit(f"no caller had a computer within {START_S:g} s: see the log")
        tend(processes)
        time.sleep(0.2)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(random.uniform(0.3, 1.7) * every_s)
        # One that is not at work now is left out: else whatever starts first would die for all.
        kind = random.choice(kinds)
        killed[kind] += kill_one(kind, processes)
        tend(processes)
    return killed


def tend(processes: Processes) -> None:
    """Do what the supervisor and beat do."""
    from django.db import Error, connection

    from sandbox.host import hosts
    from sandbox.leasing import reaper

    processes.revive()
    try:
        reaper.reap()
        hosts.give_up_silent()
    except Error:
        connection.close()


def settle(processes: Processes) -> bool:
    """Wait until nobody holds anything and every computer is ready or gone."""
    from sandbox.models import Lease, Sandbox

    deadline = time.monotonic() + SETTLE_S
    quiet = (Sandbox.State.READY, Sandbox.State.GONE)
    while time.monotonic() < deadline:
        if processes.host.poll() is not None:
            processes.host = processes._start_host()
        held = Lease.objects.filter(state=Lease.State.ACTIVE).exists()
        moving = Sandbox.objects.exclude(state__in=quiet).exists()
        warm = Sandbox.objects.filter(state=Sandbox.State.READY).count()
        if not held and not moving and warm >= WARM:
            return True
        reap_only()
        time.sleep(1.0)
    return False


def reap_only() -> None:
    from sandbox.leasing import reaper

    reaper.reap()


def account(lines: list[dict[str, Any]], settled: bool, provider: str) -> dict[str, Any]:
    """Compare what callers saw, what rows say and what runs; the values of `wrong` should be empty."""
    from sandbox import pool
    from sandbox.models import Lease, Sandbox

    ready = Sandbox.objects.filter(state=Sandbox.State.READY)
    running = {(h.name, h.boot_id) for h in pool.provider(provider).running()}
    rows = {(row.name, row.handle["boot_id"]) for row in ready}
    over = Lease.objects.exclude(state=Lease.State.ACTIVE)
    dead = {(line["sandbox"], line["boot_id"]) for line in lines if "killed" in line}
    return {
        "leases": dict(Counter(Lease.objects.values_list("state", flat=True))),
        "computers": dict(Counter(Sandbox.objects.values_list("state", flat=True))),
        "actions": sum(line.get("actions", 0) for line in lines),
        "leases checked by their callers": sum("doubled" in line for line in lines),
        "late actions": dict(Counter(line["late"] for line in lines if "late" in line)),
        "causes of lost computers": dict(
            Counter(Sandbox.objects.exclude(cause="").values_list("cause", flat=True)).most_common(
                12
            )
        ),
        "wrong": {
            "done twice": [a for line in lines for a in line.get("doubled", ())],
            "of another lease": [a for line in lines for a in line.get("foreign", ())],
            "answered and not done": [a for line in lines for a in line.get("missing", ())],
            "late and accepted": [line for line in lines if line.get("late") == "acted"],
            "gone without a cause": list(
                Sandbox.objects.filter(state=Sandbox.State.GONE, cause="").values_list(
                    "name", flat=True
                )
            ),
            "over without a reason": list(over.filter(release_reason="").values_list("pk", flat=True)),
            "running without a row": sorted(running - rows) if settled else [],
            "ready without a computer": sorted(rows - running),
            "killed and still ready": sorted(rows & dead),
            "not settled": [] if settled else list(
                Sandbox.objects.exclude(state=Sandbox.State.GONE).values_list(
                    "name", "state", "cause"
                )
            ),
        },
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--provider", choices=sorted(KINDS), default="local")
    parser.add_argument("--every", type=float, default=4.0, help="mean seconds between two kills")
    parser.add_argument("--log", type=Path, default=Path("chaos.log"), help="what they all said")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing outlives it
    os.environ |= {"SANDBOX_POOL_SIZE": str(WARM), "SANDBOX_MAX": str(MOST)}
    os.environ |= {"SANDBOX_HOST": "chaos", "SANDBOX_PROVIDER": options.provider}
    began = time.monotonic()
    with database() as state:
        processes = Processes(options.log)
        try:
            killed = make_chaos(
                processes, KINDS[options.provider], options.minutes * 60, options.every
            )
            processes.end_callers()
            settled = settle(processes)
            report = account(processes.lines, settled, options.provider)
        finally:
            processes.end_callers()
            processes.host.terminate()
            with suppress(subprocess.TimeoutExpired):
                processes.host.wait(60)
            processes.host.kill()
            processes.host.wait()
        left = [str(path) for path in (state / "sandboxes" / options.provider).glob("*")]
        report["wrong"]["left at the end"] = left
    report["killed"] = dict(killed)
    report["seconds"] = round(time.monotonic() - began)
    print(json.dumps(report, indent=2, default=str))
    return 1 if any(report["wrong"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
