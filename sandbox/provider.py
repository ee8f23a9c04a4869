"""The two protocols that every kind of computer speaks: Provider starts them, Desktop is one of them.

No Django here: a provider knows nothing of leases; it starts, finds and stops.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from trajectory import Action, Element


class SandboxError(Exception):
    """Something about a computer went wrong; subclasses name the boundary."""


class ProvisionFailed(SandboxError):
    """The provider could not bring a computer up; the message names the stage and the log's tail."""


class DesktopLost(SandboxError):
    """The computer does not answer any more."""


class StaleLease(SandboxError):
    """The caller's epoch is not the computer's: somebody else holds it now."""


class ActionFailed(SandboxError):
    """The computer refused or could not perform an action; nothing else happened."""


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """What to start: `image` names a recipe of the provider; sizes in pixels, MiB and cores.

    `network` is "none" or "allowlist": then `allow` are the hosts that may be reached over HTTP(S), such as
    example.org, *.example.org, host:8080. `shared` are host folders bound read-only, as {guest: host}.
    """

    name: str
    image: str = "desktop"
    width: int = 1280
    height: int = 720
    memory_mb: int = 1536
    cpus: float = 1.0
    pids: int = 512
    network: str = "none"
    allow: tuple[str, ...] = ()
    shared: dict[str, Path] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Handle:
    """Where a running computer is. Plain strings: it is kept on a row and read by other processes.

    `boot_id` differs for every start, so that a reset can be proved.
    """

    provider: str
    name: str
    boot_id: str
    guest_socket: str = ""
    rfb_socket: str = ""
    rfb_password: str = ""
    pid: int = 0


@dataclass(frozen=True, slots=True)
class Frame:
    """What a desktop shows: `png` is the encoded picture; `seq` counts observations of this boot."""

    png: bytes
    width: int
    height: int
    elements: tuple[Element, ...] | None
    url: str
    captured_at: float
    seq: int = 0

    @property
    def sha256(self) -> str:
        """The name of the picture: equal screens are encoded equally, so they have one name."""
        return hashlib.sha256(self.png).hexdigest()


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What an action gave: `output` for tools, `replayed` if this action_id had been done before."""

    output: str = ""
    exit_code: int | None = None
    replayed: bool = False


class Desktop(Protocol):
    """One running computer. Calls block; every one raises DesktopLost if the guest is gone."""

    width: int
    height: int

    def health(self) -> dict[str, object]:
        """Return {"boot_id", "epoch", "ready", ...}; cheap."""
        ...

    def fence(self, epoch: int) -> None:
        """Raise the guest's epoch: whoever holds a lower one is refused from now on."""
        ...

    def observe(self, *, elements: bool = False) -> Frame: ...

    def perform(self, action: Action, *, epoch: int, action_id: str) -> ActionResult:
        """Do `action` once; the same `action_id` again returns the first result.

        Raises StaleLease, ActionFailed.
        """
        ...

    def settle(self, *, quiet_ms: int = 150, max_ms: int = 2000) -> bool:
        """Wait until the picture has not changed for `quiet_ms`; False if `max_ms` passed first."""
        ...

    def shell(
        self, command: str, *, epoch: int, action_id: str, timeout_ms: int = 30_000
    ) -> ActionResult: ...

    def launch(self, argv: Sequence[str], *, epoch: int, action_id: str) -> None: ...

    def read_file(self, path: str) -> bytes: ...

    def write_file(self, path: str, data: bytes, *, epoch: int) -> None: ...

    def evaluate(self, expression: str) -> object:
        """Evaluate JavaScript in the page in front; raises ActionFailed if there is no page."""
        ...

    def close(self) -> None:
        """Let go of the connection; the computer goes on."""
        ...


class Provider(Protocol):
    """Starts, finds and stops computers of one kind."""

    name: str

    def start(self, spec: SandboxSpec) -> Handle:
        """Bring a fresh computer up and return when its guest answers; raises ProvisionFailed."""
        ...

    def connect(self, handle: Handle) -> Desktop:
        """Return the desktop behind `handle`; raises DesktopLost."""
        ...

    def alive(self, handle: Handle) -> bool: ...

    def stop(self, handle: Handle) -> None:
        """End the computer and remove what it left; fine if it is gone already."""
        ...

    def running(self) -> list[Handle]:
        """Return every computer of this provider on this host, rows or no rows."""
        ...
