"""System packages that the desktops need. Standard library only: runs before anything is installed."""

from __future__ import annotations

import shutil
import subprocess

DESKTOP = (
    "tigervnc-standalone-server",
    "openbox",
    "tint2",
    "hsetroot",
    "xterm",
    "mousepad",
    "pcmanfm",
    "chromium",
    "bubblewrap",
    "dbus",
    "dbus-x11",
    "at-spi2-core",
    "x11-utils",
    "xdotool",
    "xclip",
    "fonts-dejavu-core",
    "chromium-headless-shell",
    "adb",
    "pulseaudio",
    "pulseaudio-utils",
    "espeak-ng",
    "libxkbcommon-x11-0",
    "fcitx5",
    "fcitx5-frontend-gtk3",
    "fcitx5-chewing",
    "qemu-system-x86",
    "qemu-utils",
    "mmdebstrap",
    "podman",
    "runc",
)


def missing(packages: tuple[str, ...] = DESKTOP) -> list[str]:
    """Return what apt has to install; everything where there is no dpkg to ask."""
    if shutil.which("dpkg-query") is None:
        return list(packages)
    asked = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *packages],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    there = {line.split()[0] for line in asked.stdout.splitlines() if line.endswith(" installed")}
    return [name for name in packages if name not in there]
