"""`python -m guest.machine`: the session of a virtual machine: window manager, panel, the guest.

The machine's own X server runs already. A machine is forked from another one that has booted, so
the guest learns here, by one line of JSON, which start it belongs to from now on.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

from guest import modes
from guest.boot import HOME, BootError, keep_running, start
from guest.computer import Computer
from guest.routes import DESKTOP
from guest.server import Server

# A machine without hardware virtualisation boots about ten times slower than a namespace.
_TIMEOUT_S = 120.0
_X_SOCKET = "/tmp/.X11-unix/X0"


def main() -> None:
    """Bring the session up, then serve the guest and its renewals until killed."""
    parser = argparse.ArgumentParser(prog="guest.machine", description=__doc__)
    parser.add_argument("--run", type=Path, required=True)
    run: Path = parser.parse_args().run
    os.umask(0o077)
    os.environ.pop("PYTHONPATH", None)  # ours, not that of a Python the user starts
    shutil.copytree(HOME, Path.home(), dirs_exist_ok=True, copy_function=shutil.copyfile)
    try:
        _wait_for_x()
        start("hsetroot", "-solid", "#2f6478")
        keep_running("openbox")
        computer = Computer(":0", boot_id="template")
        if not computer.windows.wait_for_manager(timeout_s=_TIMEOUT_S):
            raise BootError(f"openbox did not answer within {_TIMEOUT_S:g} s")
        keep_running("tint2")
        _wait_for_panel(computer)
    except BootError as error:
        sys.exit(f"guest.machine: {error}")
    server = Server(run / "guest.sock", computer, limits="", routes=DESKTOP)
    threading.Thread(target=server.serve_forever, name="guest", daemon=True).start()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(run / "renew.sock"))
        listener.listen()
        print("guest.machine: ready", flush=True)
        while True:
            connection, _ = listener.accept()
            with connection, connection.makefile("rwb") as line:
                line.write(json.dumps(_renewed(server, json.loads(line.readline()))).encode())
                line.write(b"\n")
                line.flush()


def _renewed(server: Server, wanted: dict[str, Any]) -> dict[str, object]:
    """Be the computer of another start; answers {"boot_id"} or {"error"}."""
    try:
        width, height = int(wanted["width"]), int(wanted["height"])
        if (width, height) != (server.computer.screen.width, server.computer.screen.height):
            modes.resize(":0", width, height)
            server.computer = Computer(":0", boot_id=wanted["boot_id"])
        else:
            server.computer.renew(wanted["boot_id"])
        server.limits = str(wanted["limits"])
        server.started = time.monotonic()
    except Exception as error:  # the boundary: the host hears what broke
        return {"error": f"{type(error).__name__}: {error}"}
    return {"boot_id": server.computer.boot_id}


def _wait_for_panel(computer: Computer) -> None:
    """Forks shall not each draw the panel again; a desktop without one is a desktop too."""
    deadline = time.monotonic() + _TIMEOUT_S
    while shutil.which("tint2") and "tint2" not in computer.windows.classes():
        if time.monotonic() > deadline:
            return print("guest.machine: no panel", flush=True)
        time.sleep(0.2)


def _wait_for_x() -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                return probe.connect(_X_SOCKET)
            except OSError:
                pass
        if time.monotonic() > deadline:
            raise BootError(f"Xorg did not listen within {_TIMEOUT_S:g} s")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
