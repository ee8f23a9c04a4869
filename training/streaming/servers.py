"""A policy server of one's own: a process per folder, found again by whoever looks after it next.

It is on the loopback, with the token of POLICY_TOKEN. Rollout workers that ask it run on the same
machine; for others choose a deployment with an address that they reach.
"""

from __future__ import annotations

import signal
import socket
import time
from pathlib import Path
from typing import Any

import httpx
from django.conf import settings

from training.runs import process

HOST = "127.0.0.1"
ASK_S = 5.0  # a load that takes longer goes on by itself
RESTART_S = 2.0  # between two starts of a server that dies at once


class NotUp(Exception):
    """The server can't answer yet, or not any more; the message says why. Ask again."""


class Loading(NotUp):
    """The server answers, with the version that it had before."""


class CantServe(Exception):
    """The server refuses the checkpoint for good; the message says why."""


def ensure(folder: Path, checkpoint_uri: str, version: str, *, threads: int = 2) -> str:
    """Return the address of the server in `folder` once it serves `checkpoint_uri` as `version`.

    Starts it where none lives there, on the port that it had before: who asks it need not be told.
    Returns or raises within seconds, so call it until it returns. Raises NotUp, Loading, CantServe.
    """
    if not process.held(folder):
        _start(folder, checkpoint_uri, version, threads)
        raise NotUp("it is being started")
    address = address_of(folder)
    load(address, checkpoint_uri, version, token=str(settings.POLICY_TOKEN or ""))
    return address


def load(address: str, checkpoint_uri: str, version: str, *, token: str) -> None:
    """Have the server at `address` serve a checkpoint; does nothing where it does.

    Raises NotUp, Loading, CantServe.
    """
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with httpx.Client(base_url=address, headers=headers, timeout=ASK_S) as client:
            health: dict[str, Any] = client.get("/health").json()
            late = Loading if health.get("version") else NotUp
            if (health.get("version"), health.get("checkpoint")) == (version, checkpoint_uri):
                return
            if health.get("loading"):
                raise late(f"it loads {health['loading']}")
            body = {"checkpoint": checkpoint_uri, "version": version}
            try:
                response = client.post("/v1/load", json=body)
            except httpx.ReadTimeout:
                raise late(f"it loads {version}") from None
    except (httpx.HTTPError, ValueError) as error:
        raise NotUp(f"{address} does not answer: {error!r}") from error
    if response.status_code == 503:
        raise NotUp(f"{address} is not ready: {response.text[:500]}")
    if response.status_code >= 400:
        raise CantServe(f"{address} can't serve {version}: {response.text[:500]}")


def address_of(folder: Path) -> str:
    """Return where the server in `folder` answers; raises NotUp where none was ever started."""
    try:
        return f"http://{HOST}:{int((folder / 'port').read_text())}"
    except (FileNotFoundError, ValueError):
        raise NotUp("it was never started") from None


def stop(folder: Path) -> None:
    """End the server in `folder`; does nothing where none lives there.

    It is killed: what it keeps is on disk whole or not at all.
    """
    if process.held(folder):
        try:
            process.adopt(folder).send(signal.SIGKILL)
        except process.Gone:
            pass  # it ended in between


def _start(folder: Path, checkpoint_uri: str, version: str, threads: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    started = folder / "started"
    if started.exists() and time.time() - started.stat().st_mtime < RESTART_S:
        raise NotUp(f"it ended: {process.log_tail(folder, size=500)}")
    started.touch()
    arguments = [
        "--host", HOST, "--port", str(_port(folder)), "--state", str(folder), "--exact",
        "--checkpoint", checkpoint_uri, "--version", version, "--threads", str(threads),
    ]  # fmt: skip
    process.start(
        folder,
        "agent.serving",
        arguments,
        extra={
            "STORAGE_URL": settings.STORAGE_URL,
            "TANDEM_POLICY_TOKEN": str(settings.POLICY_TOKEN or ""),
        },
    )


def _port(folder: Path) -> int:
    """Return the port of the server before, if it is free, else any that is."""
    kept = folder / "port"
    wanted = int(kept.read_text()) if kept.exists() else 0
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            found = int(probe.getsockname()[1])
        break
    kept.write_text(str(found))
    return found
