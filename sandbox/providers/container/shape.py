"""What the container of a sandbox looks like: every mount, limit and right that it gets, or not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker.types import LogConfig, Ulimit

from sandbox.images import code
from sandbox.provider import ProvisionFailed, SandboxSpec

GUEST_HOME = "/home/user"
GUEST_RUN = "/run/tandem"
LABEL = "tandem.state"
"""On every container of ours: the folder of the provider that started it."""

ENTRY = (
    'set -m; umask 077; mkdir -p ~ "$XDG_RUNTIME_DIR"; mkdir -m 1777 /tmp/.X11-unix; cd; '
    '"$@" & wait $!'
)
"""What a container starts with. It stays the first process, and buries the dead: they would eat up
the limit of processes. Without -m all that is inside would ignore Ctrl+C, as it does in the
background of a shell without job control."""

GUEST_CODE = "/opt/tandem"
_HOME_MB, _TMP_MB, _SHM_MB = 512, 256, 256
MODULES = (*code.OURS, "websockets", "jeepney")
"""Mounted, not baked in: a change of the guest needs no new image. Debian has no such websockets."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One start: its folder on the host, the unprivileged uid it runs as, and the image's tag."""

    spec: SandboxSpec
    folder: Path
    boot_id: str
    uid: int
    image: str
    limits: str

    def container(self) -> dict[str, Any]:
        """Return what the engine's create call takes."""
        spec = self.spec
        return {
            "image": self.image,
            "command": self._boot(),
            "name": container_name(self.boot_id),
            "hostname": "desk",
            "user": f"{self.uid}:{self.uid}",
            "environment": self._environment(),
            "labels": {
                LABEL: str(self.folder.parent),
                "tandem.sandbox": spec.name,
                "tandem.boot": self.boot_id,
            },
            "network_mode": "none",
            "ipc_mode": "private",
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "read_only": True,
            "mem_limit": spec.memory_mb << 20,
            "memswap_limit": spec.memory_mb << 20,
            "nano_cpus": int(spec.cpus * 1e9),
            "pids_limit": spec.pids,
            # Named, or the engine asks for more than a host without CAP_SYS_RESOURCE may give.
            "ulimits": [
                Ulimit(name="nofile", soft=4096, hard=4096),
                Ulimit(name="nproc", soft=spec.pids, hard=spec.pids),
                Ulimit(name="core", soft=0, hard=0),
            ],
            "shm_size": _SHM_MB << 20,
            "tmpfs": self._memory_disks(),
            "volumes": self._volumes(),
            # What a session prints is the one file on the host's disk that it can make longer.
            "log_config": LogConfig(type="json-file", config={"max-size": "1m"}),
        }

    def _memory_disks(self) -> dict[str, str]:
        """Return the writable places: in the sandbox's own memory, gone with it."""
        # Their modes say that anyone may write: there is nobody else. ENTRY makes what is private.
        anyone = "mode=1777,nosuid,nodev"
        return {
            "/home": f"size={_HOME_MB}m,{anyone},exec",
            "/tmp": f"size={_TMP_MB}m,{anyone},exec",
            "/var/tmp": f"size=16m,{anyone},noexec",
            "/var/lib/xkb": f"size=1m,{anyone},noexec",
            "/run/user": f"size=16m,{anyone},noexec",
        }

    def _volumes(self) -> dict[str, dict[str, str]]:
        """Return {host folder: where and how}; only the run folder can be written, while it starts."""
        etc = self.folder / "etc"
        mounts = {str(self.folder / "run"): {"bind": GUEST_RUN, "mode": "rw"}}
        for name in ("passwd", "group", "machine-id"):
            mounts[str(etc / name)] = {"bind": f"/etc/{name}", "mode": "ro"}
        mounts[str(code.compiled(*MODULES))] = {"bind": GUEST_CODE, "mode": "ro"}
        for target, shared in self.spec.shared.items():
            if not shared.is_dir():
                raise ProvisionFailed(f"can't bind {shared} into a sandbox: not a folder")
            if shared.stat().st_mode & 0o005 != 0o005:
                raise ProvisionFailed(
                    f"the sandbox's own user can't read {shared}: chmod -R o+rX it"
                )
            mounts[str(shared.resolve())] = {"bind": target, "mode": "ro"}
        return mounts

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": f"{GUEST_CODE}/guest/bin:/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": GUEST_CODE,
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": GUEST_HOME,
            "USER": "user",
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": "/run/user/own",
            "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1",
            "GSETTINGS_BACKEND": "memory",
            # It needs namespaces, which the engine's seccomp profile forbids.
            "TANDEM_CHROMIUM_FLAGS": "--no-sandbox",
        }

    def _boot(self) -> list[str]:
        return [
            *("bash", "-c", ENTRY, "init"),
            *("python3", "-m", "guest.boot", "--run", GUEST_RUN),
            *("--geometry", f"{self.spec.width}x{self.spec.height}"),
            *("--boot-id", self.boot_id, "--limits", self.limits),
        ]


def container_name(boot_id: str) -> str:
    """Return the name that the engine knows a start by; no two starts share it."""
    return f"tandem-{boot_id}"
