"""The container engine of this machine by its Docker-compatible API: Docker's, or a Podman service.

DOCKER_HOST names another socket. Where there is only podman, a service is started on a socket of
our own; it ends itself when nobody has asked it for a while, and containers do not need it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from pathlib import Path

import docker
from docker.errors import DockerException
from docker.utils import kwargs_from_env

from sandbox.provider import ProvisionFailed

_DOCKER_SOCKET = Path("/var/run/docker.sock")
_RUN = Path("/run/tandem")
_IDLE_S = 300
_UP_WITHIN_S = 15.0
_ANSWERS_WITHIN_S = 60
_ENVIRONMENT = ("PATH", "HOME", "LANG", "TMPDIR", "XDG_RUNTIME_DIR")
"""What our Podman service gets: it outlives who started it, and has no business with its secrets."""


def connect() -> docker.DockerClient:
    """Return a client of an engine that answers; raises ProvisionFailed with the way to get one."""
    named = kwargs_from_env()
    if "base_url" in named:
        return _answering(named.pop("base_url"), "DOCKER_HOST", **named)
    if _DOCKER_SOCKET.is_socket():
        return _answering(f"unix://{_DOCKER_SOCKET}", str(_DOCKER_SOCKET))
    if shutil.which("podman") is None:
        raise ProvisionFailed(
            "no container engine: apt-get install podman runc, or name a Docker socket "
            "in DOCKER_HOST"
        )
    return _podman()


def _answering(url: str, what: str, **tls: object) -> docker.DockerClient:
    client = None
    try:
        client = docker.DockerClient(base_url=url, timeout=_ANSWERS_WITHIN_S, **tls)
        client.ping()
    except DockerException as error:
        if client is not None:
            client.close()
        raise ProvisionFailed(f"the container engine at {what} does not answer: {error}") from error
    except OSError as error:  # requests' errors are of this kind
        if client is not None:
            client.close()
        raise ProvisionFailed(f"the container engine at {what} does not answer: {error}") from error
    return client


def _podman() -> docker.DockerClient:
    """Return a client of our Podman service; start it if nobody has."""
    _RUN.mkdir(mode=0o700, exist_ok=True)
    socket = _RUN / "podman.sock"
    url = f"unix://{socket}"
    # Several hosts may want it at the same moment: one starts it, the others find it.
    with (_RUN / "podman.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return _answering(url, str(socket))
        except ProvisionFailed:
            _start_service(socket)
        deadline = time.monotonic() + _UP_WITHIN_S
        while True:
            try:
                return _answering(url, str(socket))
            except ProvisionFailed as error:
                if time.monotonic() > deadline:
                    log = (_RUN / "podman.log").read_text(errors="replace")[-1500:]
                    raise ProvisionFailed(f"podman's service did not start: {log}") from error
            time.sleep(0.02)


def _start_service(socket: Path) -> None:
    # crun, podman's first choice, refuses hosts that mix both versions of control groups.
    runtime = ["--runtime", "runc"] if shutil.which("runc") else []
    log = os.open(_RUN / "podman.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        subprocess.run(
            [
                *("setsid", "--fork", "podman", *runtime),
                *("system", "service", "--time", str(_IDLE_S), f"unix://{socket}"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=True,
            cwd="/",
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        )
    finally:
        os.close(log)
