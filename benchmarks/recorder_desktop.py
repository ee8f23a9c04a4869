"""What a recorder is measured on: a display with two editors, and where asked a voice and a bus."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

VOICE = "Now I write a line, and then I look at what I wrote."
NEEDED = {
    "Xvnc": "tigervnc-standalone-server", "openbox": "openbox", "xterm": "xterm", "xdotool": "xdotool",
    "pulseaudio": "pulseaudio", "pactl": "pulseaudio-utils", "espeak-ng": "espeak-ng",
    "dbus-daemon": "dbus", "mousepad": "mousepad",
}  # fmt: skip


class Desktop(NamedTuple):
    """A display, and the environment of programs on it."""

    name: str
    environment: dict[str, str]


@contextmanager
def desktop(folder: Path, *, sound: bool = False, accessible: bool = False) -> Iterator[Desktop]:
    """An Xvnc of 1280x720 with openbox and two editors: xterms, or with a bus two of GTK's.

    With `sound` a PulseAudio whose only source, voice.monitor, speaks all the time.
    """
    if missing := [f"{p} ({d})" for p, d in NEEDED.items() if shutil.which(p) is None]:
        raise SystemExit(f"missing: {', '.join(missing)}")
    environment = {k: v for k, v in os.environ.items() if k != "DBUS_SESSION_BUS_ADDRESS"}
    with ExitStack() as stack:
        name = stack.enter_context(_display())
        environment["DISPLAY"] = name
        if accessible:
            address = f"unix:path={folder}/bus"
            command = ["dbus-daemon", "--session", "--nofork", f"--address={address}"]
            stack.enter_context(_program(command, environment))
            _until((folder / "bus").exists, "the session bus")
            environment |= {"DBUS_SESSION_BUS_ADDRESS": address, "GTK_MODULES": "gail:atk-bridge"}
        if sound:
            environment["PULSE_SERVER"] = stack.enter_context(_voice(folder, environment))
        stack.enter_context(_program(["openbox"], environment))
        time.sleep(2)
        for number, place in enumerate(("+50+50", "+650+50")):
            if accessible:
                home = folder / f"home{number}"
                home.mkdir()
                command = ["mousepad", "--disable-server"]
                stack.enter_context(_program(command, {**environment, "HOME": str(home)}))
                time.sleep(4)
                x, y = place[1:].split("+")
                found = subprocess.run(
                    ["xdotool", "search", "--onlyvisible", "--class", "mousepad"],
                    env=environment, capture_output=True, text=True,
                ).stdout.split()  # fmt: skip
                for window in found[-1:]:
                    words = ["windowsize", window, "560", "600", "windowmove", window, x, y]
                    subprocess.run(["xdotool", *words], env=environment, check=False)
            else:
                command = ["xterm", "-bc", "-geometry", f"95x45{place}", "-e", "cat"]
                stack.enter_context(_program(command, environment))
        yield Desktop(name, environment)


@contextmanager
def _display() -> Iterator[str]:
    read, write = os.pipe()
    server = subprocess.Popen(
        [
            *("Xvnc", "-displayfd", str(write), "-geometry", "1280x720", "-depth", "24"),
            *("-rfbport", "-1", "-SecurityTypes", "None", "-nolisten", "tcp", "-s", "0"),
            # mss, which the peer uses, finds no visual among those of GLX.
            *("-extension", "GLX"),
        ],
        pass_fds=[write], stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(write)
    try:
        with os.fdopen(read) as told:
            yield f":{told.readline().strip()}"
    finally:
        server.terminate()
        server.wait()


@contextmanager
def _voice(folder: Path, environment: dict[str, str]) -> Iterator[str]:
    address = f"unix:{folder}/native"
    own = {**environment, "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)}
    spoken = folder / "spoken.wav"
    subprocess.run(["espeak-ng", "-w", str(spoken), VOICE], check=True, timeout=60)
    command = [
        *("pulseaudio", "-n", "--exit-idle-time=-1", "--use-pid-file=no", "--daemonize=no"),
        *("-L", "module-null-sink sink_name=voice rate=16000 channels=1"),
        *("-L", f"module-native-protocol-unix auth-anonymous=1 socket={folder}/native"),
    ]
    again = 'while paplay -s "$0" -d voice "$1"; do sleep 1; done'
    with _program(command, own):
        _until(
            lambda: subprocess.run(["pactl", "-s", address, "info"], capture_output=True).returncode == 0,
            "PulseAudio",
        )  # fmt: skip
        with _program(["sh", "-c", again, address, str(spoken)], own):
            yield address


@contextmanager
def _program(command: list[str], environment: dict[str, str]) -> Iterator[None]:
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _until(there: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 60
    while not there():
        if time.monotonic() > end:
            raise SystemExit(f"{what} did not start in a minute")
        time.sleep(0.1)
