"""What the relay asks before and while a screen is open; no Django, so it can be measured alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

from sandbox.dial import Gateway
from sandbox.screen.rfb import Key, Pointer


class Close(IntEnum):
    """Why a screen's socket was closed; a browser gives up on 4400-4409 and retries the others."""

    PROTOCOL = 4400
    NO_TICKET = 4401
    FORBIDDEN = 4403
    SLOW_READER = 4408
    LEASE_OVER = 4409
    DESKTOP_GONE = 4410
    TOO_MANY_VIEWERS = 4429


@dataclass(frozen=True, slots=True)
class Grant:
    """What a redeemed ticket opens: one screen, for one user, in one mode, for one lease."""

    lease_id: int
    epoch: int
    user_id: int
    mode: str  # "view" or "control"
    rfb_socket: str
    rfb_password: str = field(repr=False)
    session_key: str = field(default="", repr=False)
    gateway: Gateway | None = None  # where the screen is on another host


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a screen may not be opened, or not be kept open."""

    code: Close
    reason: str


@dataclass(frozen=True, slots=True)
class Standing:
    """How a grant stands now: `human_control` says whether its owner may type."""

    human_control: bool


@dataclass(frozen=True, slots=True)
class Hint:
    """Something about a lease may have changed: look again.

    `human_control` False may be acted on at once; True is only believed once it is read.
    `controller` names the newest controller's socket: every other one makes way.
    """

    human_control: bool | None = None
    controller: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """A command line that was entered in a terminal of the computer."""

    text: str


class Hand(Protocol):
    """Keeps what a hand does while it has control."""

    def begin(self) -> None:
        """Get ready: control has just been given."""
        ...

    def wants_frame(self, event: Key | Pointer, pressed: int) -> bool:
        """Whether a picture must be taken before `event` is forwarded; `pressed`: buttons down."""
        ...

    async def take_frame(self) -> None:
        """Take that picture; never raises, and returns within its deadline."""
        ...

    def add(self, event: Key | Pointer | Command, pressed: int) -> None:
        """Keep `event`, which is being forwarded now, or is a command line that was."""
        ...

    async def flush(self) -> None:
        """Write what has been kept so far."""
        ...

    async def close(self) -> None:
        """Write what is left, and take no more."""
        ...


class Gate(Protocol):
    """Who may open a screen, who may go on, and what is kept of it."""

    async def redeem(self, token: str) -> Grant | Refused:
        """Use the ticket up and say what it opens."""
        ...

    async def look(self, grant: Grant) -> Standing | Refused:
        """Say whether `grant` still holds."""
        ...

    def hints(
        self,
        grant: Grant,
        heard: Callable[[Hint], None],
        quiet: Callable[[], Awaitable[None]],
    ) -> AbstractContextManager[None]:
        """Call `heard` on the event loop for every hint about the lease; hints may be lost.

        `quiet` is awaited before control is taken away: input stops and what came is written.
        """
        ...

    async def announce(self, grant: Grant, socket: str) -> None:
        """Tell every process that `socket` is the lease's controller now."""
        ...

    def hand(self, grant: Grant) -> Hand | None:
        """Return what keeps the input of a controller; None to keep nothing."""
        ...
