"""The Debian packages of a desktop image: one list for containers and virtual machines."""

from __future__ import annotations

SUITE = "bookworm"

DESKTOP = (
    # the session
    *("dbus", "dbus-x11", "openbox", "tint2", "hsetroot", "at-spi2-core", "fonts-dejavu-core"),
    # programs that people and agents open
    *("xterm", "mousepad", "pcmanfm", "chromium"),
    # what the guest calls
    *(
        "python3-minimal",
        "python3-pil",
        "python3-xlib",
        "x11-utils",
        "x11-xserver-utils",
        "xdotool",
    ),
    *("procps", "psmisc", "xclip", "ca-certificates", "curl"),
)
"""What every desktop has, whatever it runs in."""

CONTAINER = (
    *("tigervnc-standalone-server", "tigervnc-tools"),
    *("pulseaudio", "pulseaudio-utils"),
)
"""A container shares the host's kernel: an X server that speaks RFB, and sound without a card.

The sound is not in DESKTOP: a virtual machine's session starts none.
"""

MACHINE = (
    *("systemd-sysv", "udev", "kmod", "initramfs-tools-core", "busybox", "linux-image-amd64"),
    *("xserver-xorg-core", "xserver-xorg-input-libinput"),
)
"""A virtual machine boots: a kernel with DRM, its modules, and Xorg on the emulated card."""

LEFT_OUT = (
    *("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/lintian/*"),
    *("/usr/share/locale/*", "/usr/share/help/*"),
)
"""Files of the packages that no desktop needs (dpkg's path-exclude)."""
