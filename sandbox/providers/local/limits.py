"""Memory, CPU and process limits of one sandbox, by whichever cgroup layout this host lets us write.

Where none can be written, root still limits the number of processes (by rlimit), an ordinary user
nothing: `Limits.kind` says so, and so does the desktop's health().
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from sandbox.provider import SandboxSpec

_ROOT = Path("/sys/fs/cgroup")
_PARENT = "tandem"
_PERIOD_US = 100_000
_CONTROLLERS = ("memory", "pids", "cpu")


@dataclass(frozen=True, slots=True)
class Limits:
    """`kind` is "cgroup v2", "cgroup v1", "rlimits" or "none"; `groups` are the folders to join."""

    kind: str
    groups: tuple[Path, ...]


def create(spec: SandboxSpec, *, group: str) -> Limits:
    """Make the control groups of a sandbox and set their limits; the caller puts it into them.

    `group` is a name that no other start on this host has.
    """
    for kind, attempt in (("cgroup v2", _version_2), ("cgroup v1", _version_1)):
        try:
            return Limits(kind, attempt(spec, group))
        except OSError:  # no such layout here, or not ours to write: the next one, and say which
            continue
    return Limits("rlimits" if os.geteuid() == 0 else "none", ())


def remove(groups: tuple[Path, ...], *, timeout_s: float = 10.0) -> None:
    """Remove the groups of a sandbox, ending whatever is still in them; fine if they are gone."""
    deadline = time.monotonic() + timeout_s
    for group in groups:
        while True:
            try:
                group.rmdir()
            except FileNotFoundError:
                pass
            except OSError:  # the last process is still leaving
                if time.monotonic() < deadline:
                    _kill_all(group)
                    time.sleep(0.01)
                    continue
                raise
            break


def causes(groups: tuple[Path, ...]) -> list[str]:
    """Return which limits the sandbox has run into, in words; [] where none or none is counted.

    The kernel counts: memory.events, memory.oom_control (v1) and pids.events.
    """
    found = []
    for file, word, said in (
        ("memory.events", "oom_kill", "{} processes were ended for memory"),
        ("memory.oom_control", "oom_kill", "{} processes were ended for memory"),
        ("pids.events", "max", "{} new processes were refused"),
    ):
        for group in groups:
            with contextlib.suppress(OSError, ValueError):
                counts = dict(line.split() for line in (group / file).read_text().splitlines())
                if times := int(counts.get(word, 0)):
                    found.append(said.format(times))
    return found


def _kill_all(group: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def _version_2(spec: SandboxSpec, group: str) -> tuple[Path, ...]:
    available = (_ROOT / "cgroup.controllers").read_text().split()
    if not set(_CONTROLLERS) <= set(available):
        raise FileNotFoundError("the v2 tree lacks controllers")
    parent = _ROOT / _PARENT
    parent.mkdir(exist_ok=True)
    for folder in (_ROOT, parent):
        (folder / "cgroup.subtree_control").write_text(" ".join(f"+{c}" for c in _CONTROLLERS))
    values = {
        "memory.max": str(spec.memory_mb << 20),
        "pids.max": str(spec.pids),
        "cpu.max": f"{int(spec.cpus * _PERIOD_US)} {_PERIOD_US}",
    }
    return (_filled(parent / group, values),)


def _version_1(spec: SandboxSpec, group: str) -> tuple[Path, ...]:
    values = {
        "memory": {"memory.limit_in_bytes": str(spec.memory_mb << 20)},
        "pids": {"pids.max": str(spec.pids)},
        "cpu": {
            "cpu.cfs_period_us": str(_PERIOD_US),
            "cpu.cfs_quota_us": str(int(spec.cpus * _PERIOD_US)),
        },
    }
    made: list[Path] = []
    try:
        for controller, settings in values.items():
            parent = _ROOT / controller / _own(controller) / _PARENT
            parent.mkdir(exist_ok=True)
            made.append(_filled(parent / group, settings))
    except OSError:
        remove(tuple(made))
        raise
    return tuple(made)


def _own(controller: str) -> str:
    """Return this process's own group: a sandbox's limits must stay under those of its host."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path.lstrip("/")
    raise FileNotFoundError(f"no cgroup v1 controller {controller}")


def _filled(group: Path, settings: dict[str, str]) -> Path:
    group.mkdir()
    try:
        for name, value in settings.items():
            (group / name).write_text(value)
    except OSError:
        with contextlib.suppress(OSError):
            group.rmdir()
        raise
    return group
