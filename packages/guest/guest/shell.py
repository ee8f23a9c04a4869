"""Commands: run to the end with a limit, or started and left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Sequence

from guest.errors import ActionFailed
from guest.fencing import Result

_MAX_OUTPUT = 64 * 1024
_MAX_TIMEOUT_MS = 600_000


def run(command: str, *, timeout_ms: int) -> Result:
    """Run `command` by sh in the home folder; stdout and stderr together, cut at 64 KiB.

    A command that is still running after `timeout_ms` is ended with all it started in its
    process group; exit_code is then 124.
    """
    process = subprocess.Popen(
        ["sh", "-c", command],
        cwd=os.path.expanduser("~"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=min(timeout_ms, _MAX_TIMEOUT_MS) / 1000)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        output += f"\n[ended after {timeout_ms} ms]".encode()
        code = 124
    return Result(output=_text(output), exit_code=code)


def launch(argv: Sequence[str]) -> None:
    """Start a program and leave it; raises ActionFailed if it can't be started."""
    if not argv:
        raise ActionFailed("nothing to launch: argv is empty")
    try:
        process = subprocess.Popen(
            list(argv),
            cwd=os.path.expanduser("~"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise ActionFailed(f"can't start {argv[0]}: {error.strerror}") from error
    threading.Thread(target=process.wait, name=f"reap {argv[0]}", daemon=True).start()


def _text(output: bytes) -> str:
    text = output[:_MAX_OUTPUT].decode(errors="replace")
    return text if len(output) <= _MAX_OUTPUT else text + f"\n[cut: {len(output)} bytes in all]"
