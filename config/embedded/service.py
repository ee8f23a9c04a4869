"""One process that others depend on: how it starts, when it is ready, how it ends."""

from __future__ import annotations

import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol

# Below the ephemeral range: else an outgoing connection may sit on a port before its service does.
PORTS = range(15_000, 30_000)
SHUFFLE = random.SystemRandom()  # processes with the same seed must not draw the same ports


class StartFailed(Exception):
    """A part did not come up; one line that names it and the way out."""


@dataclass(frozen=True)
class Account:
    """Who a service runs as: PostgreSQL refuses root."""

    name: str
    uid: int
    gid: int

    def owns(self, folder: Path, mode: int = 0o700) -> Path:
        """Make `folder` if need be and give it to this account."""
        folder.mkdir(parents=True, exist_ok=True)
        os.chown(folder, self.uid, self.gid)
        folder.chmod(mode)
        return folder

    def writes(self, path: Path, text: str) -> Path:
        """Write a file that only this account can read."""
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        os.chown(path, self.uid, self.gid)
        return path


def unprivileged() -> Account:
    """Return the account that services run as: ourselves, or as root `postgres`, else `nobody`."""
    if os.geteuid() != 0:
        entry = pwd.getpwuid(os.geteuid())
        return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    raise StartFailed("no account named postgres or nobody: `useradd --system postgres` makes one")


def can_pass(account: Account, path: Path) -> bool:
    """Return whether `account` can reach `path`: every parent folder must let it through."""
    if os.geteuid() != 0:
        return os.access(path, os.R_OK | os.X_OK)
    test = subprocess.run(
        ["test", "-r", str(path), "-a", "-x", str(path)],
        user=account.uid,
        group=account.gid,
        extra_groups=[],
        check=False,
    )
    return test.returncode == 0


def runnable(account: Account, binary: Path, spare: Path) -> Path:
    """Return `binary`, or a copy of it in `spare` where `account` cannot reach the original."""
    if can_pass(account, binary):
        return binary
    copy = spare / binary.name
    if not copy.exists() or copy.stat().st_size != binary.stat().st_size:
        spare.mkdir(parents=True, exist_ok=True)
        partial = copy.with_suffix(".partial")
        shutil.copy(binary, partial)
        partial.replace(copy)
    if not can_pass(account, copy):
        raise StartFailed(f"the account {account.name} cannot reach {copy}: set TANDEM_STATE")
    return copy


class Service(Protocol):
    """A part of the embedded system."""

    name: str
    stop_signal: signal.Signals

    def prepare(self) -> None:
        """Make folders and configuration; does nothing the second time."""
        ...

    def command(self) -> list[str]: ...

    def environment(self) -> dict[str, str]: ...

    def ready(self) -> bool:
        """Do one cheap real operation: SELECT 1, PING, PUT."""
        ...


def free_port() -> int:
    """Return a port of PORTS that is free now; raises StartFailed."""
    return free_ports(1)[0]


def free_ports(count: int, *, but: Collection[int] = ()) -> list[int]:
    """Return different free ports of PORTS, none of `but`; raises StartFailed."""
    tried = (port for port in SHUFFLE.sample(PORTS, 1000) if port not in but)
    found = list(islice((port for port in tried if not port_taken(port)), count))
    if len(found) < count:
        raise StartFailed(f"no free port between {PORTS.start} and {PORTS.stop}")
    return found


def port_taken(port: int, host: str = "127.0.0.1") -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return True
    return False


def tail(log: Path, lines: int = 5) -> str:
    """Return the last lines of a log, of at most its last 16 KiB."""
    try:
        with log.open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - (16 << 10), 0))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""


def launch(
    service: Service, *, log: Path, account: Account | None = None, extra: Mapping[str, str] = {}
) -> subprocess.Popen[bytes]:
    """Start a service in a process group of its own, its output appended to `log`."""
    identity = (
        {"user": account.uid, "group": account.gid, "extra_groups": []}
        if account is not None and os.geteuid() == 0
        else {}
    )
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            service.command(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**service.environment(), **extra},
            cwd="/" if identity else None,
            start_new_session=True,
            **identity,  # type: ignore[call-overload]
        )


def wait_ready(
    service: Service, process: subprocess.Popen[bytes], *, log: Path, deadline_s: float = 30
) -> None:
    """Return when the service answers; raise StartFailed with the log's tail if it dies or is late."""
    deadline = time.monotonic() + deadline_s
    while not service.ready():
        if process.poll() is not None:
            raise StartFailed(
                f"{service.name} ended with status {process.returncode}: see {log}\n{tail(log)}"
            )
        if time.monotonic() > deadline:
            raise StartFailed(
                f"{service.name} did not answer within {deadline_s:.0f} s: see {log}\n{tail(log)}"
            )
        time.sleep(0.03)


def stop(service: Service, process: subprocess.Popen[bytes], *, deadline_s: float = 10) -> None:
    """End a service politely, then with its whole process group."""
    if process.poll() is None:
        process.send_signal(service.stop_signal)
        try:
            process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
