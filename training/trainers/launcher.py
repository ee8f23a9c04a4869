"""How many processes a trainer is, and starting them: `python -m training.trainers.launcher N MODULE DIR`.

torchrun does the same for a cluster, and works with the trainers too (they read RANK and WORLD_SIZE).
On one machine it doesn't end as a run must: it puts its processes into sessions of their own, where a
kill of the run's process group misses them, kills them 30 s after SIGTERM in the midst of a checkpoint,
and ends as failed when they stopped as asked.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

GRACE_S = 10.0  # what the others get to say what happened once one process has failed
PR_SET_PDEATHSIG = 1


def command(module: str, directory: str | Path, config: Mapping[str, object]) -> list[str]:
    """Return what stands behind `python -m` to run trainer `module` on a run directory.

    The configuration's `processes` is how many; 0 is one per GPU, or one where there is none. A kind
    that has no such key (merge) is one process.
    """
    count = int(str(config.get("processes", 1))) or max(1, gpus())
    alone = [module, str(directory)]
    return alone if count == 1 else ["training.trainers.launcher", str(count), *alone]


def gpus() -> int:
    """Return how many GPUs a trainer would see, without loading torch."""
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    if shown is not None:
        return len([name for name in shown.split(",") if name.strip() not in ("", "-1")])
    return sum(bool(re.fullmatch(r"nvidia\d+", path.name)) for path in Path("/dev").glob("nvidia*"))


def main(count: int, module: str, arguments: list[str]) -> int:
    """Run `count` processes of `module` to their end; returns the first exit status that is not 0.

    SIGTERM and SIGINT are theirs to answer. Where one fails the others can't go on: they are ended.
    """
    children: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int, frame: object) -> None:
        for child in children:
            if child.poll() is None:
                child.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    port = str(free_port())
    threads = {} if "OMP_NUM_THREADS" in os.environ else {"OMP_NUM_THREADS": threads_each(count)}
    for rank in range(count):
        place = {
            "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count),
            "LOCAL_WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
        }  # fmt: skip
        children.append(
            subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                env={**os.environ, **threads, **place},
                # They hold the lock of the run's directory for as long as they live, as this does.
                close_fds=False,
                preexec_fn=die_with_parent,
            )
        )
    while any(child.poll() is None for child in children):
        if any(child.returncode for child in children):
            return end(children)
        time.sleep(0.1)
    return end(children)


def end(children: list[subprocess.Popen[bytes]]) -> int:
    """Wait for the rest, kill what does not end; returns the first exit status that is not 0."""
    failed = next((child.returncode for child in children if child.returncode), 0)
    until = time.monotonic() + GRACE_S
    for child in children:
        try:
            child.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    return failed if failed >= 0 else 128 - failed


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def threads_each(count: int) -> str:
    return str(max(1, (os.cpu_count() or 1) // count))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
