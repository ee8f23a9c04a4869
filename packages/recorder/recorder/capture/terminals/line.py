"""What the lines below a terminal's process are doing: termios(3), proc(5), /dev/pts.

A line that shows nothing of what is typed, and takes it whole, asks for a password. A program that
reads key by key (a shell's editor, vim) turns the echo off as well: those are known by name, since a
program that draws its own password field looks the same from here.
"""

from __future__ import annotations

import os
import termios
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

TERMINALS = frozenset({
    "xterm", "uxterm", "xterm-256color", "urxvt", "rxvt", "st", "st-256color", "alacritty", "kitty",
    "konsole", "lxterminal", "xfce4-terminal", "gnome-terminal", "gnome-terminal-server",
    "mate-terminal", "tilix", "terminator", "sakura", "org.wezfurlong.wezterm", "qterminal", "roxterm",
    "mlterm", "eterm", "aterm", "terminology", "tilda", "guake", "yakuake", "cool-retro-term",
})  # fmt: skip
"""Windows of these programs, by WM_CLASS in lower case, are nothing but lines."""

# What is typed there goes on to another line, which can't be seen from here.
_REMOTE = (
    "ssh", "autossh", "sshpass", "slogin", "mosh", "mosh-client", "et", "telnet", "rlogin", "rsh",
    "plink", "ftp", "sftp", "lftp", "su", "sudo", "doas", "run0", "pkexec", "login", "sg", "newgrp",
    "tmux", "tmate", "screen", "byobu", "zellij", "dtach", "abduco", "docker", "podman", "nerdctl",
    "kubectl", "oc", "k9s", "crictl", "distrobox", "toolbox", "lxc", "incus", "machinectl",
    "systemd-run", "systemd-nspawn", "nsenter", "virsh", "qemu", "vagrant", "gcloud", "aws", "az",
    "heroku", "flyctl", "adb", "minicom", "picocom", "tio", "cu",
)  # fmt: skip
_BY_KEY = frozenset({
    "bash", "zsh", "ksh", "ksh93", "mksh", "tcsh", "csh", "rbash", "vi", "vim", "vim.basic",
    "vim.tiny", "nvim", "view", "nano", "less", "more", "most", "man", "git", "top", "htop", "sqlite3",
    "psql", "bc", "gdb",
})  # fmt: skip
_INTERPRETERS = ("python", "ipython")  # of these only what is started without a script
_PTS = range(136, 144)  # major numbers of /dev/pts (Documentation/admin-guide/devices.txt)
_PROCESSES = 400
_LFLAG = 3


class _Process(NamedTuple):
    pid: int
    name: str
    group: int
    tty: int
    foreground: int  # the group that its line's keys go to


def asks_for_password(pid: int) -> bool | None:
    """Whether any line below the process `pid` asks for a password now; None if nobody can tell."""
    try:
        return _asks(pid)
    except (OSError, ValueError):  # a process that went while it was looked at
        return None


def _asks(pid: int) -> bool | None:
    own = _process(pid)
    if own is None:
        return None
    below = list(_below(pid))
    lines = {p.tty for p in below if _major(p.tty) in _PTS and p.tty != own.tty}
    if not lines or len(below) >= _PROCESSES:
        return None
    told = [_line(tty, [p for p in below if p.tty == tty]) for tty in lines]
    if True in told:
        return True
    return None if None in told else False


def _line(tty: int, processes: list[_Process]) -> bool | None:
    flags = _flags(tty)
    if flags is None:
        return None
    if not flags & termios.ECHO and flags & termios.ICANON:
        return True
    group = processes[0].foreground
    front = [p for p in processes if p.group == group]
    if not front or any(_elsewhere(p) for p in front):
        return None
    if not flags & termios.ECHO and not all(_by_key(p) for p in front):
        return None
    return False


def _flags(tty: int) -> int | None:
    """Return the local flags of a line of ours; None for one that can't be looked at."""
    name = f"/dev/pts/{_minor(tty)}"
    try:
        line = os.open(name, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(line)
        if status.st_uid != os.getuid() or status.st_rdev != os.makedev(_major(tty), _minor(tty)):
            return None
        return int(termios.tcgetattr(line)[_LFLAG])
    except (OSError, termios.error):
        return None
    finally:
        os.close(line)


def _elsewhere(process: _Process) -> bool:
    """Whether keys go on from this process to where nobody can look."""
    name = process.name
    if name in _REMOTE or name.startswith(("qemu-", "tmux:", "ssh-")):
        return True
    try:
        return Path(f"/proc/{process.pid}").stat().st_uid != os.getuid()
    except OSError:
        return True


def _by_key(process: _Process) -> bool:
    if not process.name.startswith(_INTERPRETERS):
        return process.name in _BY_KEY
    with suppress(OSError):
        return Path(f"/proc/{process.pid}/cmdline").read_bytes().count(b"\0") == 1
    return False


def _below(pid: int) -> Iterator[_Process]:
    level = [pid]
    count = 0
    while level and count < _PROCESSES:
        children = [child for parent in level for child in _children(parent)]
        level = []
        for child in children[: _PROCESSES - count]:
            found = _process(child)
            if found is not None:
                count += 1
                level.append(child)
                yield found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError):
                line = Path(f"/proc/{pid}/task/{task}/children").read_text()
                found += [int(word) for word in line.split()]
    return found


def _process(pid: int) -> _Process | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    begin, end = text.index("("), text.rindex(")")
    _, _, group, _, tty, foreground = text[end + 2 :].split()[:6]
    return _Process(pid, text[begin + 1 : end], int(group), int(tty), int(foreground))


def _major(tty: int) -> int:
    return os.major(tty) if tty > 0 else 0


def _minor(tty: int) -> int:
    return os.minor(tty)
