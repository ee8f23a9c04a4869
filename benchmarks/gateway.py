"""What a host's gateway costs: one desktop asked by its unix socket and through TLS, in turns.

`python -m benchmarks.gateway [--rounds N]`. Needs what `local` desktops need; no database: the
gateway is the real one, in a process of its own, but for its rows. Prints medians, as Markdown.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import django

from sandbox.desktop import GuestDesktop
from sandbox.dial import Gateway
from sandbox.gateway import certificates
from sandbox.provider import Handle, SandboxSpec
from sandbox.providers import load

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
HOST, NAME = "bench-host", "bench"
ASKS, LOOKS, OPENS = 200, 20, 10


def serve(folder: Path, guest_socket: str) -> None:
    """Run the gateway with one lease that never ends; print its port."""
    django.setup()
    from sandbox.gateway import admission, server
    from sandbox.gateway.admission import Admitted
    from sandbox.gateway.tokens import Claims

    def admit(claims: Claims, *, host: str) -> Admitted:
        return Admitted(1, claims.sandbox, claims.service, claims.epoch, guest_socket, None)

    admission.admit = admit  # type: ignore[assignment]
    admission.standing = set  # type: ignore[assignment]
    running = server.Server(host=HOST, listen="127.0.0.1:0", folder=folder)
    running.start()
    print(running.port, flush=True)
    sys.stdin.read()
    running.stop()


def timed(work: Callable[[], object], times: int) -> list[float]:
    """Return how long each of `times` calls took, in ms."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        took.append((time.perf_counter() - began) * 1000)
    return took


def measure(handle: Handle, gateway: Gateway | None) -> dict[str, list[float]]:
    """Ask one desktop one way."""

    def reopen() -> None:
        GuestDesktop(handle, gateway=gateway).close()

    desktop = GuestDesktop(handle, gateway=gateway)
    try:
        desktop.observe()
        return {
            "health": timed(desktop.health, ASKS),
            "observe": timed(desktop.observe, LOOKS),
            "connect + health": timed(reopen, OPENS),
        }
    finally:
        desktop.close()


def main() -> None:
    """Measure both ways in turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", nargs=2, metavar=("FOLDER", "SOCKET"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(Path(options.serve[0]), options.serve[1])
    django.setup()
    from sandbox.gateway.tokens import Claims, sign

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "tls"
        certificates.make_authority(folder)
        for role, name in (("host", HOST), ("client", "bench")):
            certificates.issue(folder, role=role, name=name, into=folder)
        provider = load("local", state=Path(temporary) / "sb")
        handle = provider.start(SandboxSpec(NAME))
        argv = [sys.executable, "-m", "benchmarks.gateway", "--serve", str(folder)]
        process = subprocess.Popen(
            [*argv, handle.guest_socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            far = Gateway(
                HOST, f"127.0.0.1:{port}", folder, NAME, 1,
                lambda service: sign(Claims(1, NAME, 1, service, "control")),
            )  # fmt: skip
            ways = {"unix socket": None, "gateway": far}
            found: dict[str, dict[str, list[float]]] = {way: {} for way in ways}
            for _ in range(options.rounds):
                for way, gateway in ways.items():
                    for what, took in measure(handle, gateway).items():
                        found[way].setdefault(what, []).extend(took)
        finally:
            process.kill()
            provider.stop(handle)
    report(found)


def report(found: dict[str, dict[str, list[float]]]) -> None:
    """Print medians and p99 in ms, and what the gateway adds."""
    print("| ms | unix socket p50 | p99 | gateway p50 | p99 | added p50 |")
    print("|---|---|---|---|---|---|")
    for what, near in found["unix socket"].items():
        far = found["gateway"][what]
        added = statistics.median(far) - statistics.median(near)
        cells = [f"{value:.2f}" for took in (near, far) for value in (p50(took), p99(took))]
        print(f"| {what} | {' | '.join(cells)} | {added:+.2f} |")


def p50(took: list[float]) -> float:
    """Return the median."""
    return statistics.median(took)


def p99(took: list[float]) -> float:
    """Return the 99th percentile, nearest rank."""
    return sorted(took)[min(len(took) - 1, len(took) * 99 // 100)]


if __name__ == "__main__":
    main()
