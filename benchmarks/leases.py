"""Claims of 10,000 simulated computers on 100 simulated hosts, against a real PostgreSQL.

`python -m benchmarks.leases [--seconds N] [--claimers N] [--processes N]`. Computers are rows: hosts
are one process that does to rows what sandbox hosts do after a reset and a probe. Claimers are
threads in forked processes, as web and worker processes are; each takes a computer by
`leases.acquire`, gives it back by `leases.release`, and begins again. PostgreSQL is the embedded
one with fsync on. Prints Markdown.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import signal
import threading
import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.relay import tree_cpu_s
from benchmarks.rollout_parts import database

PEER_PER_S = 45.0
"""kubernetes-sigs/agent-sandbox: claims per second that its stock limits carry."""

AIM_PER_S = 200.0
COMPUTERS = 10_000
RESET_S = 0.5
PROBE_EVERY_S = 10.0
REAP_EVERY_S = 5.0
TTL = timedelta(seconds=3)

FORK = multiprocessing.get_context("fork")
Samples = list[tuple[float, float]]
"""When a claim was due and how long after that it was there, in seconds."""


def claimer(until: float, every_s: float, samples: Samples, errors: list[str]) -> None:
    """Claim and give back until `until`; with `every_s` at that pace, from when each was due."""
    from django.db import connection

    from sandbox.leasing import leases

    due = time.monotonic()
    while time.monotonic() < until:
        if every_s:
            time.sleep(max(0.0, due - time.monotonic()))
        else:
            due = time.monotonic()
        try:
            lease = leases.acquire(
                owner=None, purpose="agent", idempotency_key=uuid.uuid4().hex, pool="bench", ttl=TTL
            )
            samples.append((due, time.monotonic() - due))
            leases.release(lease, reason="done")
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")
        due += every_s
    connection.close()


def claimers(until: float, threads: int, every_s: float, pipe: Connection) -> None:
    """Run `threads` claimers in this process and send what they measured."""
    samples: Samples = []
    errors: list[str] = []
    running = [
        threading.Thread(target=claimer, args=(until, every_s, samples, errors))
        for _ in range(threads)
    ]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    pipe.send((samples, errors))


def hosts(stopping: Any) -> None:
    """Make computers ready again RESET_S after their release, and probe each every PROBE_EVERY_S."""
    from django.db import connection

    ready = """
        UPDATE sandbox_sandbox SET state = 'ready', state_deadline = NULL, cause = '',
            ready_at = clock_timestamp(), probed_at = clock_timestamp(),
            reuse_count = reuse_count + 1
        WHERE state = 'resetting' AND host = %s
            AND state_deadline < now() + interval '120 s' - interval '1 s' * %s
    """
    probe = "UPDATE sandbox_sandbox SET probed_at = now() WHERE state = 'ready' AND host = %s"
    turn = 0
    probed = [time.monotonic() + PROBE_EVERY_S * number / 100 for number in range(100)]
    while not stopping.wait(RESET_S / 100):
        number = turn % 100
        turn += 1
        with connection.cursor() as cursor:
            cursor.execute(ready, [f"host-{number}", RESET_S])
            if probed[number] <= time.monotonic():
                cursor.execute(probe, [f"host-{number}"])
                probed[number] = time.monotonic() + PROBE_EVERY_S
    connection.close()


def reaper(stopping: Any) -> None:
    """Reap as often as the platform does."""
    from django.db import connection

    from sandbox.leasing import reaper as reaping

    while not stopping.wait(REAP_EVERY_S):
        reaping.reap()
    connection.close()


def in_processes(
    processes: int, work: Callable[..., None], *args: Any
) -> list[tuple[Any, Connection]]:
    """Start `work(*args, pipe)` in so many forked processes."""
    from django.db import connection

    connection.close()  # no child may share it
    started = []
    for _ in range(processes):
        here, there = FORK.Pipe(duplex=False)
        process = FORK.Process(target=work, args=(*args, there), daemon=True)
        process.start()
        there.close()
        started.append((process, here))
    return started


def claimers_cpu_s() -> float:
    """Return the CPU seconds of the processes that have been waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def load(
    seconds: float, processes: int, count: int, every_s: float, *, postmaster: int
) -> dict[str, float]:
    """Let `count` claimers work for `seconds`; return claims/s, the latencies and the CPU in ms.

    A claim's CPU is that of its release too, and PostgreSQL's that of hosts and reaper as well.
    """
    began, used = time.monotonic(), claimers_cpu_s()
    database_used = tree_cpu_s(postmaster)
    started = in_processes(processes, claimers, began + seconds, count // processes, every_s)
    samples: Samples = []
    errors: list[str] = []
    for process, pipe in started:
        of_process, failed = pipe.recv()
        samples += of_process
        errors += failed
        process.join()
    took = time.monotonic() - began
    waits = sorted(wait for _, wait in samples)
    return {
        "claims/s": len(samples) / took,
        **{f"p{q}": 1000 * waits[min(len(waits) - 1, len(waits) * q // 100)] for q in (50, 95, 99)},
        "CPU": 1000 * (claimers_cpu_s() - used) / len(samples),
        "CPU of PostgreSQL": 1000 * (tree_cpu_s(postmaster) - database_used) / len(samples),
        "claims": len(samples),
        "errors": len(errors),
        **({f"first error: {errors[0]}": 1.0} if errors else {}),
    }


def doubles() -> tuple[int, int, int]:
    """Return the number of leases, of pairs that overlap on one computer, and of equal epochs."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("""
            SELECT count(*),
                count(*) FILTER (WHERE granted_at < before),
                count(*) FILTER (WHERE epoch <= older)
            FROM (
                SELECT granted_at, epoch,
                    max(coalesce(released_at, 'infinity')) OVER earlier AS before,
                    max(epoch) OVER earlier AS older
                FROM sandbox_lease
                WINDOW earlier AS (
                    PARTITION BY sandbox_id ORDER BY granted_at, id
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) one
        """)
        leases, overlapping, epochs = cursor.fetchone()
    return int(leases), int(overlapping), int(epochs)


def leak(processes: int, count: int) -> tuple[int, float]:
    """Kill claimers at work; return how many leases they left and the s until all were reaped.

    The time counts from the moment at which the last of them expired.
    """
    from sandbox.models import Lease

    started = in_processes(processes, claimers, time.monotonic() + 60, count // processes, 0.0)
    time.sleep(3)
    for process, _ in started:
        os.kill(process.pid, signal.SIGKILL)
    for process, _ in started:
        process.join()
    active = Lease.objects.filter(state=Lease.State.ACTIVE)
    left = active.count()
    expired = time.monotonic() + TTL.total_seconds()
    while active.exists() and time.monotonic() < expired + 60:
        time.sleep(0.05)
    return left, max(0.0, time.monotonic() - expired)


def plans() -> list[tuple[int, float, float]]:
    """Return (rows, ms in the database, rows looked at) of one claim; leaves COMPUTERS rows."""
    from benchmarks.lease_parts import fill, plan, reads
    from sandbox.models import Pool

    pool = Pool.objects.create(name="bench", provider="fake", most=COMPUTERS)
    found = []
    for rows, more in ((100, 100), (1000, 900), (COMPUTERS, COMPUTERS - 1000)):
        fill(pool, more)
        taken = [plan(pool, at_once=True) for _ in range(21)]
        taken.sort(key=lambda one: float(one["Execution Time"]))
        middle = taken[len(taken) // 2]
        found.append((rows, float(middle["Execution Time"]), reads(middle, "sandbox_sandbox")))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--claimers", type=int, default=64)
    parser.add_argument("--processes", type=int, default=8)
    args = parser.parse_args()
    with database(sync=True) as state:
        postmaster = int((state / "postgres/cluster/postmaster.pid").read_text().split()[0])
        print("| computers | claim in the database, ms | rows looked at |\n|---|---|---|")
        for rows, ms, looked_at in plans():
            print(f"| {rows} | {ms:.2f} | {looked_at:.0f} |")
        stopping = FORK.Event()
        helpers = [in_processes(1, work, stopping)[0][0] for work in (_hosts, _reaper)]
        print("\n| load | claims/s | p50 ms | p95 ms | p99 ms | CPU ms, client", end="")
        print(" | CPU ms, PostgreSQL | claims | errors |\n|---|---|---|---|---|---|---|---|---|")
        size = (args.processes, args.claimers)
        for name, every_s in (
            (f"{args.claimers} claimers, each again at once", 0.0),
            (f"{args.claimers} claimers, {PEER_PER_S:.0f}/s in all", args.claimers / PEER_PER_S),
        ):
            got = load(args.seconds, *size, every_s, postmaster=postmaster)
            values = " | ".join(f"{value:.4g}" for value in list(got.values())[:8])
            print(f"| {name} | {values} |", *list(got)[8:])
            if not every_s:
                ratio = got["claims/s"] / PEER_PER_S
                verdict = "reached" if got["claims/s"] >= AIM_PER_S else "missed"
        left, after_s = leak(*size)
        leases, overlapping, epochs = doubles()
        stopping.set()
        for process in helpers:
            process.join()
        print(f"\nAim {AIM_PER_S:.0f} claims/s: {verdict}; {ratio:.1f}x the {PEER_PER_S:.0f}/s of")
        print("kubernetes-sigs/agent-sandbox's stock limits.")
        print(f"{leases} leases: {overlapping} overlap on one computer, {epochs} repeat an epoch.")
        print(
            f"Claimers killed at work left {left} leases; none was active {after_s:.1f} s after"
            f" they had expired (two reaper periods: {2 * REAP_EVERY_S:.0f} s)."
        )
        print(f"Load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.")


def _hosts(stopping: Any, _: Connection) -> None:
    hosts(stopping)


def _reaper(stopping: Any, _: Connection) -> None:
    reaper(stopping)


if __name__ == "__main__":
    main()
