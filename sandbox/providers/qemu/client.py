"""How a provider speaks to the bridge of its folder, starting it where it does not run."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from sandbox.provider import DesktopLost
from sandbox.providers.qemu.front import THERE

_START_S = 60.0
_ANSWER_S = 150.0
_PROBE_S = 5.0


def open(state: Path, name: str, renewal: dict[str, Any]) -> None:
    """Have the bridge greet a machine and give it its identity; raises DesktopLost."""
    renewal = {**renewal, "time": time.time()}
    answer = _ask(state, {"do": "open", "name": name, "renewal": renewal})
    if "error" in answer:
        raise DesktopLost(f"{name}: {answer['error']}")


def close(state: Path, name: str) -> None:
    """Have the bridge let go of a machine; fine if there is no bridge."""
    with contextlib.suppress(OSError, ValueError):
        _once(state, {"do": "close", "name": name})


def revive(state: Path, name: str) -> None:
    """Start the bridge anew if it died, and wait until it serves this machine again."""
    if _reachable(state / "machines" / name / "run" / "guest.sock"):
        return
    deadline = time.monotonic() + _START_S
    while not _reachable(state / "machines" / name / "run" / "guest.sock"):
        if not _ask(state, {"do": "serves", "name": name}).get("serves"):
            return  # the machine has just gone
        if time.monotonic() > deadline:
            raise DesktopLost(f"the bridge did not reach {name} within {_START_S:g} s")
        time.sleep(0.02)


def _ask(state: Path, request: dict[str, Any]) -> dict[str, Any]:
    deadline = time.monotonic() + _START_S
    started: subprocess.Popen[bytes] | None = None
    while True:
        try:
            return _once(state, request)
        except (OSError, ValueError) as error:
            if isinstance(error, TimeoutError) or time.monotonic() > deadline:
                raise DesktopLost(f"the bridge of {state} does not answer: {error}") from error
        if started is None or started.poll() is not None:
            started = _start(state)
        time.sleep(0.01)


def _once(state: Path, request: dict[str, Any]) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as bridge:
        bridge.settimeout(_ANSWER_S)
        bridge.connect(str(state / "bridge.sock"))
        bridge.sendall(json.dumps(request).encode() + b"\n")
        with bridge.makefile("rb") as answers:
            answer = json.loads(answers.readline())
    return answer if isinstance(answer, dict) else {}


def _start(state: Path) -> subprocess.Popen[bytes]:
    """Start a bridge that outlives this process; if there is one it ends at once."""
    with (state / "bridge.log").open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "sandbox.providers.qemu.bridge", str(state)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )


def _reachable(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_PROBE_S)
        try:
            probe.connect(str(path))
            probe.sendall(f"GET {THERE} HTTP/1.1\r\nHost: bridge\r\n\r\n".encode())
            return probe.recv(12) == b"HTTP/1.1 200"
        except OSError:
            return False
