"""The first program of a sandbox: X server, window manager, panel, then the guest itself.

One Python does it all, so that the guest is ready as soon as the desktop is. When the X server or
this process ends, the sandbox ends: a half-dead desktop is never served.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

HOME = Path(__file__).with_name("home")
"""What a new user's home starts with: the look of the window manager, the panel, the menus."""

_X_SOCKET = "/tmp/.X11-unix/X0"
_TIMEOUT_S = 15.0
_SOUND = (
    *("pulseaudio", "-n", "--exit-idle-time=-1", "--disallow-exit", "--use-pid-file=no"),
    *("-L", "module-null-sink sink_name=desk", "-L", "module-native-protocol-unix"),
)
"""No card: what programs play goes nowhere, and can be heard at the source desk.monitor."""

# A window that openbox is told of within 0.1 s of its own announcement may stay unmanaged for seconds.
_MANAGER_GRACE_S = 0.25


class BootError(Exception):
    """The desktop did not come up; the message names the part."""


def main() -> None:
    """Bring the desktop up and serve it until the X server goes."""
    parser = argparse.ArgumentParser(prog="guest.boot", description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="folder for rfb.sock, guest.sock")
    parser.add_argument("--geometry", required=True, help="WIDTHxHEIGHT")
    parser.add_argument("--boot-id", required=True)
    parser.add_argument("--limits", required=True, help="which limits are in force, for health")
    options = parser.parse_args()
    os.umask(0o077)
    os.environ["DISPLAY"] = ":0"
    if (way_out := options.run / "egress.sock").exists():
        subprocess.Popen([sys.executable, "-m", "guest.outward", str(way_out)])
    os.environ.pop("PYTHONPATH", None)  # ours, not that of a Python the user starts
    shutil.copytree(HOME, Path.home(), dirs_exist_ok=True, copy_function=shutil.copyfile)
    x_server = _start_x_server(options.run, options.geometry)
    try:
        # Reading the guest's modules takes as long as Xvnc and openbox together: do both at once.
        from guest.computer import Computer
        from guest.routes import DESKTOP
        from guest.server import Server

        _wait_for_socket(_X_SOCKET, x_server)
        start("hsetroot", "-solid", "#2f6478")
        keep_running("openbox")
        computer = Computer(":0", boot_id=options.boot_id)
        if not computer.windows.wait_for_manager(timeout_s=_TIMEOUT_S):
            raise BootError(f"openbox did not announce itself within {_TIMEOUT_S:g} s")
        manager_grace()
        keep_running("tint2")
        server = Server(options.run / "guest.sock", computer, limits=options.limits, routes=DESKTOP)
        threading.Thread(target=server.serve_forever, name="guest", daemon=True).start()
        (options.run / "ready").touch()
        keep_running(*_SOUND)
        x_server.wait()
        raise BootError(f"the X server ended with status {x_server.returncode}")
    except BootError as error:
        sys.exit(f"guest.boot: {error}")


def _start_x_server(run: Path, geometry: str) -> subprocess.Popen[bytes]:
    """Start Xvnc: its RFB socket is a file of the run folder, and it never blanks the screen."""
    return subprocess.Popen(
        [
            *("Xvnc", ":0", "-geometry", geometry, "-depth", "24", "-desktop", "Tandem"),
            *("-nolisten", "tcp", "-rfbport", "-1", "-rfbunixmode", "0600"),
            *("-rfbunixpath", str(run / "rfb.sock")),
            *("-SecurityTypes", "VncAuth", "-PasswordFile", str(run / "rfb.passwd")),
            *("-AlwaysShared", "-AcceptSetDesktopSize=0", "-s", "0", "-dpms"),
        ],
        stdin=subprocess.DEVNULL,
    )


def _wait_for_socket(path: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                return probe.connect(path)
            except OSError:
                pass
        if server.poll() is not None:
            raise BootError(f"Xvnc ended with status {server.returncode} before it listened")
        if time.monotonic() > deadline:
            raise BootError(f"Xvnc did not listen on {path} within {_TIMEOUT_S:g} s")
        time.sleep(0.005)


def start(*argv: str) -> None:
    """Start a part of the session if it is installed."""
    if shutil.which(argv[0]):
        subprocess.Popen(argv, stdin=subprocess.DEVNULL)


def manager_grace() -> None:
    """Wait until a window manager that has announced itself really manages what opens."""
    time.sleep(_MANAGER_GRACE_S)


def keep_running(program: str, *words: str) -> None:
    """Start a part of the session, and again when it ends, at most once a second.

    One that is not installed is left out: its package is named in the log.
    """
    if shutil.which(program) is None:
        print(f"guest.boot: {program} is not installed: the desktop goes without it", flush=True)
        return

    def keep() -> None:
        while True:
            started = time.monotonic()
            # What is started from a menu inherits this: it must not write the sandbox's log.
            nowhere = subprocess.DEVNULL
            subprocess.run(
                [program, *words], stdin=nowhere, stdout=nowhere, stderr=nowhere, check=False
            )
            time.sleep(max(0.0, 1.0 - (time.monotonic() - started)))

    threading.Thread(target=keep, name=program, daemon=True).start()


if __name__ == "__main__":
    main()
