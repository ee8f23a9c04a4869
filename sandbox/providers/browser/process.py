"""One chromium-headless-shell: how it is started, what it weighs, and why it ended, in words."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sandbox.provider import ProvisionFailed
from sandbox.providers.browser.cdp import CdpError, Connection, Gone
from sandbox.providers.browser.spec import LOOPBACK, BrowserMissing

_PROGRAM = (
    "/usr/lib/chromium/chromium-headless-shell"  # Debian's; the one in PATH wraps it in a shell
)
_START_S = 60.0
_STOP_S = 3.0
_TAIL_BYTES = 1500

_FLAGS = (
    "--no-first-run", "--disable-gpu", "--hide-scrollbars", "--mute-audio", "--log-level=2",
    "--disable-extensions", "--disable-component-update", "--disable-background-networking",
    "--disable-background-timer-throttling", "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows", "--disable-breakpad", "--disable-sync",
    "--disable-default-apps", "--disable-client-side-phishing-detection", "--no-pings",
    "--disable-dev-shm-usage", "--disable-hang-monitor", "--disable-popup-blocking",
    "--force-color-profile=srgb", "--force-device-scale-factor=1", "--lang=en-US",
    # Frames come when they are asked for, and each holds all that happened before.
    "--enable-begin-frame-control", "--run-all-compositor-stages-before-draw",
    "--disable-new-content-rendering-timeout", "--disable-threaded-animation",
    "--disable-threaded-scrolling", "--disable-checker-imaging", "--disable-smooth-scrolling",
    # A scroller without a background of its own would wait for a frame within the frame, for ever.
    "--disable-features=RasterInducingScroll",
    # The compositor in the browser's own process and a single raster thread: a third faster.
    "--in-process-gpu", "--num-raster-threads=1",
    # A UDP socket would not ask the host resolver.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--disable-quic",
    "--remote-debugging-pipe",
)  # fmt: skip


def program() -> str:
    """Return the headless shell's path; raises BrowserMissing."""
    found = _PROGRAM if os.access(_PROGRAM, os.X_OK) else shutil.which("chromium-headless-shell")
    if found is None:
        raise BrowserMissing(
            "no chromium-headless-shell is installed: apt-get install chromium-headless-shell"
        )
    return found


class CrashedAtStart(ProvisionFailed):
    """The browser died of a signal before it answered: another start may well succeed."""


class Process:
    """A running browser and the connection to it. `lost` is called once with the cause of its end."""

    def __init__(self, state: Path, *, loopback: bool, lost: Callable[[str], None]) -> None:
        self.started_at = time.monotonic()
        self.profile = Path(tempfile.mkdtemp(prefix=f"browser-{os.getpid()}-", dir=state))
        self._lost = lost
        self._closing = ""
        self._status: int | None = None
        self._wait_lock = threading.Lock()
        self._oom_kills = _oom_kills()
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        try:
            self.pid = _spawn(self._command(loopback), theirs_in, theirs_out, self._log)
        except OSError as error:
            os.close(ours_in)
            os.close(ours_out)
            self._remove()
            raise ProvisionFailed(f"chromium-headless-shell can't be started: {error}") from error
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        self.connection = Connection(ours_in, ours_out, cause=self._cause, lost=self._end)
        try:
            self.connection.call("Browser.getVersion", timeout=_START_S)
        except CdpError as error:
            self.close("it did not come up")
            crashed = self._status is not None and os.WIFSIGNALED(self._status)
            failed = CrashedAtStart if crashed and isinstance(error, Gone) else ProvisionFailed
            raise failed(f"chromium-headless-shell did not come up: {error}") from error

    def memory(self) -> int:
        """Return the proportional set size of the browser and all its children, in bytes."""
        return sum(pss(pid) for pid in tree(self.pid))

    def close(self, reason: str) -> None:
        """End the browser and remove its profile; fine if it has ended already."""
        self._closing = self._closing or reason
        children = tree(self.pid)
        with suppress(CdpError):
            self.connection.send("Browser.close")
        if self._wait(_STOP_S) is None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._wait(_STOP_S)
        self.connection.close()
        for child in children[1:]:
            with suppress(ProcessLookupError, PermissionError):
                if os.getpgid(child) == self.pid:
                    os.kill(child, signal.SIGKILL)
        self._remove()

    # -- beginning and end -------------------------------------------------------------------

    @property
    def _log(self) -> Path:
        return self.profile / "stderr.log"

    def _command(self, loopback: bool) -> list[str]:
        rules = "MAP * ~NOTFOUND"
        if loopback:
            rules += "".join(f", EXCLUDE {host}" for host in LOOPBACK)
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # root can't have Chromium's own
        return [
            program(), *_FLAGS, *sandbox, f"--host-resolver-rules={rules}",
            f"--user-data-dir={self.profile}", "about:blank",
        ]  # fmt: skip

    def _end(self, reason: str) -> None:
        self._lost(reason)

    def _cause(self) -> str:
        """Say why the pipe broke: what was asked for, a signal, the kernel, or its own doing."""
        status = self._wait(_STOP_S)
        if self._closing:
            return f"the browser was closed: {self._closing}"
        if status is None:
            return "the browser closed its pipe but still runs"
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            text = f"the browser was killed by signal {number} ({signal.Signals(number).name})"
            if number == signal.SIGKILL and _oom_kills() > self._oom_kills:
                text += ": the kernel ran out of memory"
            return text
        return f"the browser ended with exit code {os.WEXITSTATUS(status)}: {self._tail()}"

    def _tail(self) -> str:
        try:
            return self._log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace").strip()
        except OSError:
            return "(it left no log)"

    def _wait(self, seconds: float) -> int | None:
        """Reap the process within `seconds` and return its wait status; None if it still runs."""
        deadline = time.monotonic() + seconds
        while True:
            with self._wait_lock:
                if self._status is None:
                    try:
                        pid, status = os.waitpid(self.pid, os.WNOHANG)
                    except ChildProcessError:
                        pid, status = self.pid, 0  # somebody else has reaped it
                    if pid:
                        self._status = status
                if self._status is not None:
                    return self._status
            if time.monotonic() > deadline:
                return None
            time.sleep(0.01)

    def _remove(self) -> None:
        for _ in range(10):  # a dying child may still write
            shutil.rmtree(self.profile, ignore_errors=True)
            if not self.profile.exists():
                return
            time.sleep(0.05)


def sweep(state: Path) -> None:
    """Remove the profiles that dead processes have left in `state`."""
    for profile in state.glob("browser-*-*"):
        owner = profile.name.split("-")[1]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(profile, ignore_errors=True)


def tree(pid: int) -> list[int]:
    """Return `pid` and all its descendants that run now."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            # The second field, the name in brackets, may hold spaces.
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    found = [pid]
    for known in found:
        found += children.get(known, [])
    return found


def pss(pid: int) -> int:
    """Return a process's proportional set size in bytes; 0 if it is gone or may not be read."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def _oom_kills() -> int:
    """Return how often the kernel has killed for memory in our control group."""
    with suppress(OSError, ValueError):
        for line in Path("/sys/fs/cgroup/memory.events").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def _spawn(command: list[str], read_fd: int, write_fd: int, log: Path) -> int:
    """Start `command` as leader of a group of its own, reading commands at 3 and answering at 4."""
    high_in = fcntl.fcntl(read_fd, fcntl.F_DUPFD_CLOEXEC, 64)
    high_out = fcntl.fcntl(write_fd, fcntl.F_DUPFD_CLOEXEC, 64)
    try:
        return os.posix_spawn(
            command[0],
            command,
            {**os.environ, "DBUS_SESSION_BUS_ADDRESS": "disabled:", "TZ": "UTC"},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, high_in, 3),
                (os.POSIX_SPAWN_DUP2, high_out, 4),
            ],
            setpgroup=0,
        )
    finally:
        os.close(high_in)
        os.close(high_out)
