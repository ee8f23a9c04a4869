"""The command line that starts a desktop in namespaces of its own.

As root the sandbox gets an unprivileged uid of its own, which can't read root's home or a private
state folder; so root first binds what the sandbox needs under /mnt, in a mount namespace that
nobody else sees, and only then drops to that uid. An ordinary user binds directly and keeps its uid.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from guest.outward import PORT
from sandbox.images import code
from sandbox.provider import ProvisionFailed, SandboxSpec
from sandbox.providers.local.limits import Limits

GUEST_HOME = "/home/user"
GUEST_RUN = "/run/tandem"
_GUEST_CODE = "/opt/tandem"
GUEST_UID = 1000  # inside; outside it is the sandbox's own
_LIBRARIES = ("PIL", "Xlib", "six", "websockets", "jeepney")
_ETC = (
    *("alternatives", "chromium", "dconf", "default", "fonts", "gtk-2.0", "gtk-3.0", "ld.so.cache"),
    *("localtime", "mime.types", "mailcap", "nsswitch.conf", "os-release", "ssl", "X11", "xdg"),
    *("dbus-1", "debian_version", "bash.bashrc", "ca-certificates", "libpaper.d", "papersize"),
)
# Programs read one case or the other.
_PROXY = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
_HOME_MB, _TMP_MB, _SHM_MB, _RUN_MB = 512, 256, 256, 16
# The log is the one file on the host's disk that a sandbox can make longer.
_PRLIMIT = ("prlimit", "--core=0", "--nofile=4096", f"--fsize={_HOME_MB << 20}")


@dataclass(frozen=True, slots=True)
class Jail:
    """What one start needs: its folder on the host, and the uid outside (None: the caller's own)."""

    spec: SandboxSpec
    folder: Path
    boot_id: str
    uid: int | None
    limits: Limits

    def command(self) -> list[str]:
        """Return the whole command; it detaches, writes its pid to FOLDER/pid and keeps that pid."""
        join = "".join(f"echo $$ > '{group}/cgroup.procs'; " for group in self.limits.groups)
        enter = f"set -e; echo $$ > '{self.folder}/pid'; {join}exec \"$@\""
        return ["setsid", "--fork", "sh", "-c", enter, "enter", *self._staged()]

    def _staged(self) -> list[str]:
        sources = self._sources()
        info = f"exec 8> '{self.folder}/info.json'; "
        if self.uid is None:
            inner = self._bubblewrap({source: source for source in sources})
            return ["sh", "-c", f'set -e; {info}exec "$@"', "run", *_PRLIMIT, "--", *inner]
        places = {source: f"/mnt/{n}" for n, source in enumerate(sources)}
        stage = "set -e; mount -t tmpfs -o mode=755,size=1m tandem /mnt; "
        stage += f"mkdir {' '.join(places.values())}; "
        for source, place in places.items():
            stage += f"mount --bind '{source}' {place}; "
        drop = ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups"]
        # A control group counts what it refuses; this limit would be met first and say nothing.
        nproc = [] if self.limits.groups else [f"--nproc={self.spec.pids}"]
        return [
            *("unshare", "--mount", "--propagation", "private"),
            *("sh", "-c", f'{stage}{info}cd /; exec "$@"', "stage"),
            *(*_PRLIMIT, *nproc, "--"),
            *(*drop, "--no-new-privs", "--", *self._bubblewrap(places)),
        ]

    def _sources(self) -> list[str]:
        """Return the host folders that are bound, each once."""
        read = [*python_folders(), *code_folders(), *self.spec.shared.values()]
        for folder in read:
            if not folder.is_dir() or "'" in str(folder):
                raise ProvisionFailed(f"can't bind {folder} into a sandbox: not a plain folder")
            if self.uid is not None and folder.stat().st_mode & 0o005 != 0o005:
                raise ProvisionFailed(
                    f"the sandbox's own user can't read {folder}: chmod -R o+rX it"
                )
        return list(dict.fromkeys(map(str, [self.folder / "run", self.folder / "etc", *read])))

    def _bubblewrap(self, places: dict[str, str]) -> list[str]:
        """Return bwrap's command; `places` says where each host folder can be bound from."""
        uid = str(GUEST_UID)
        command = ["bwrap", "--unshare-all", "--new-session", "--hostname", "desk", "--clearenv"]
        command += ["--uid", uid, "--gid", uid, "--info-fd", "8"]
        command += ["--ro-bind", "/usr", "/usr"]
        for name in ("lib", "lib32", "lib64", "libx32", "bin", "sbin"):
            if Path("/", name).is_symlink():
                command += ["--symlink", os.readlink(f"/{name}"), f"/{name}"]
            elif Path("/", name).is_dir():
                command += ["--ro-bind", f"/{name}", f"/{name}"]
        for name in _ETC:
            command += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
        etc = places[str(self.folder / "etc")]
        for name in ("passwd", "group", "hosts", "machine-id"):
            command += ["--ro-bind", f"{etc}/{name}", f"/etc/{name}"]
        command += ["--proc", "/proc", "--dev", "/dev"]
        # Every folder that can be written has a size: what lies in one is memory of the host.
        command += ["--size", str(_SHM_MB << 20), "--perms", "1777", "--tmpfs", "/dev/shm"]
        command += ["--size", str(_TMP_MB << 20), "--perms", "1777", "--tmpfs", "/tmp"]
        command += ["--perms", "1777", "--dir", "/tmp/.X11-unix"]
        command += ["--size", str(_RUN_MB << 20), "--tmpfs", "/run"]
        command += ["--perms", "0700", "--dir", f"/run/user/{uid}"]
        command += ["--size", str(_RUN_MB << 20), "--tmpfs", "/var/lib/xkb"]
        command += ["--symlink", "/tmp", "/var/tmp"]
        command += ["--ro-bind-try", "/var/cache/fontconfig", "/var/cache/fontconfig"]
        # The home lives in the sandbox's own memory: it can't fill the host's disk, and goes with it.
        command += ["--size", str(_HOME_MB << 20), "--perms", "0700", "--tmpfs", GUEST_HOME]
        for folder in python_folders():
            command += ["--ro-bind", places[str(folder)], str(folder)]
        imported = {str(f): f"{_GUEST_CODE}/{n}" for n, f in enumerate(code_folders())}
        for source, target in imported.items():
            command += ["--ro-bind", places[source], target]
        for target, shared in self.spec.shared.items():
            command += ["--ro-bind", places[str(shared)], target]
        command += ["--bind", places[str(self.folder / "run")], GUEST_RUN, "--chdir", GUEST_HOME]
        command += ["--remount-ro", "/", "--remount-ro", "/dev"]
        for name, value in self._environment([*imported.values()]).items():
            command += ["--setenv", name, value]
        return [*command, "--", *self._boot()]

    def _environment(self, imported: list[str]) -> dict[str, str]:
        through = f"http://127.0.0.1:{PORT}" if self.spec.network == "allowlist" else ""
        proxied = dict.fromkeys(_PROXY, through) if through else {}
        return {
            **proxied,
            "PATH": f"{imported[0]}/guest/bin:/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": ":".join(imported),
            "HOME": GUEST_HOME,
            "USER": "user",
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": f"/run/user/{GUEST_UID}",
            "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1",
            "GSETTINGS_BACKEND": "memory",
        }

    def _boot(self) -> list[str]:
        size = f"{self.spec.width}x{self.spec.height}"
        return [
            # -S: all that the guest imports is named by PYTHONPATH.
            *(_python(), "-S", "-m", "guest.boot", "--run", GUEST_RUN),
            *("--geometry", size, "--boot-id", self.boot_id, "--limits", self.limits.kind),
        ]


def _python() -> str:
    """Return the real interpreter behind the virtualenv; it is bound at the same path inside."""
    return os.path.realpath(sys.executable)


def python_folders() -> list[Path]:
    """Return the folders of the interpreter; none if it is the system's, under /usr."""
    prefix = Path(sys.base_prefix).resolve()
    return [] if prefix.is_relative_to("/usr") else [prefix]


def code_folders() -> list[Path]:
    """Return the folders that the guest is imported from, its own first."""
    return [code.compiled(*code.OURS), _libraries()]


@cache
def _libraries() -> Path:
    """Return where the libraries are: they do not change while this process runs."""
    return code.compiled(*_LIBRARIES)
