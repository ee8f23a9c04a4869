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
    x_server = _start_x_server(options.run, options.geometry)
    if (way_out := options.run / "egress.sock").exists():
        subprocess.Popen([sys.executable, "-m", "guest.outward", str(way_out)])
    os.environ.pop("PYTHONPATH", None)  # ours, not that of a Python the user starts
    shutil.copytree(HOME, Path.home(), dirs_exist_ok=True, copy_function=shutil.copyfile)
    try:
        # Reading the guest's modules takes as long as Xvnc and openbox together: do both at once.
        threading.Thread(target=_read_modules, name="modules", daemon=True).start()
        _start_session(x_server)
        from guest.computer import Computer
        from guest.routes import DESKTOP
        from guest.server import Server

        computer = Computer(":0", boot_id=options.boot_id)
        if not computer.windows.wait_for_manager(timeout_s=_TIMEOUT_S):
            raise BootError(f"openbox did not answer within {_TIMEOUT_S:g} s")
        keep_running("tint2")
        server = Server(options.run / "guest.sock", computer, limits=options.limits, routes=DESKTOP)
        threading.Thread(target=server.serve_forever, name="guest", daemon=True).start()
        (options.run / "ready").touch()
        keep_running(*_SOUND)
        x_server.wait()
        raise BootError(f"the X server ended with status {x_server.returncode}")
    except BootError as error:
        sys.exit(f"guest.boot: {error}")


def _read_modules() -> None:
    """Import what the guest is made of; who imports it too waits for this."""
    import guest.computer
    import guest.routes
    import guest.server  # noqa: F401


def _start_session(x_server: subprocess.Popen[bytes]) -> None:
    """Start the session's bus, and what draws on the screen as soon as there is one."""
    bus = _start_bus()
    _wait_for_socket(_X_SOCKET, "Xvnc", x_server)
    keep_running("openbox")
    start("hsetroot", "-solid", "#2f6478")
    if bus is not None:
        _wait_for_socket(bus[0], "dbus-daemon", bus[1])


def _start_bus() -> tuple[str, subprocess.Popen[bytes]] | None:
    """Start the D-Bus daemon of the session; None if we were started inside one that has it."""
    if "DBUS_SESSION_BUS_ADDRESS" in os.environ:
        return None
    path = f"{os.environ['XDG_RUNTIME_DIR']}/bus"
    os.environ["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={path}"
    command = ["dbus-daemon", "--session", "--nofork", "--nopidfile"]
    daemon = subprocess.Popen([*command, f"--address=unix:path={path}"], stdin=subprocess.DEVNULL)
    return path, daemon


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


def _wait_for_socket(path: str, program: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until `program` listens; raises BootError."""
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                return probe.connect(path)
            except OSError:
                pass
        if process.poll() is not None:
            raise BootError(f"{program} ended with status {process.returncode} before it listened")
        if time.monotonic() > deadline:
            raise BootError(f"{program} did not listen on {path} within {_TIMEOUT_S:g} s")
        time.sleep(0.005)


def start(*argv: str) -> None:
    """Start a part of the session if it is installed."""
    if shutil.which(argv[0]):
        subprocess.Popen(argv, stdin=subprocess.DEVNULL)


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
