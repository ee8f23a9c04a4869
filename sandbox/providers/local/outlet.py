"""The process that is a sandbox's only way out: started before it, ended with it, its refusals reported."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import sandbox
from sandbox.provider import ProvisionFailed, SandboxSpec
from sandbox.providers import records
from sandbox.providers.local.egress import parse

_log = logging.getLogger("sandbox.egress")
_ROOT = Path(sandbox.__file__).resolve().parent.parent
_LOG, _PID = "egress.log", "egress.pid"
SOCKET = "egress.sock"
_STOP_S = 5.0
_REPORTED = 100
NETWORKS = ("none", "allowlist")


def check(spec: SandboxSpec) -> None:
    """Raise ProvisionFailed for a list of hosts that can't be read."""
    try:
        for rule in spec.allow:
            parse(rule)
    except ValueError as error:
        raise ProvisionFailed(str(error)) from error


def start(spec: SandboxSpec, folder: Path, boot_id: str) -> None:
    """Start the proxy of a sandbox with network "allowlist"; its socket lies in the run folder."""
    if spec.network != "allowlist":
        return
    path = folder / "run" / SOCKET
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        # The sandbox's own user connects; nobody else on the host can enter the folder.
        path.chmod(0o666)
        listener.listen(128)
        number = listener.fileno()
        command = [
            "setsid", "--fork", "sh", "-c", f"echo $$ > '{folder / _PID}'; exec \"$@\"", "proxy",
            sys.executable, "-m", "sandbox.providers.local.proxy", "--boot-id", boot_id,
            "--listener", str(number), "--log", str(folder / _LOG),
        ]  # fmt: skip
        for rule in spec.allow:
            command += ["--allow", rule]
        with (folder / "egress.err").open("wb") as out:
            subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=_ROOT,
                pass_fds=[number], check=True,
            )  # fmt: skip


def stop(folder: Path, boot_id: str, name: str) -> None:
    """End the proxy and report what it refused; fine if there is none."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        pid = int((folder / _PID).read_text())
        deadline = time.monotonic() + _STOP_S
        while records.runs(pid, boot_id) and time.monotonic() < deadline:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)
    for refusal in refused(folder)[:_REPORTED]:
        _log.warning(
            "%s was refused %s:%s: %s", name, *(refusal[k] for k in ("host", "port", "why"))
        )


def refused(folder: Path) -> list[dict[str, object]]:
    """Return the different destinations that were refused: host, port, why, at (seconds)."""
    found: dict[tuple[object, object], dict[str, object]] = {}
    with contextlib.suppress(FileNotFoundError, ValueError):
        for line in (folder / _LOG).read_text().splitlines():
            refusal = json.loads(line)
            found.setdefault((refusal["host"], refusal["port"]), refusal)
    return list(found.values())
