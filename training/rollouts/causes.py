"""Whose fault it was: what ended an episode without a result, and what is to be done about it."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import TypeAlias

from agent.loop import EnvironmentFailure
from agent.policy import (
    PolicyBusy,
    PolicyError,
    PolicyMisconfigured,
    PolicyRefused,
    PolicyUnreachable,
)
from blobs import BlobError
from sandbox.families import SetupFailed, UnknownTask
from sandbox.leasing.leases import LeaseOver
from sandbox.provider import DesktopLost, ProvisionFailed, StaleLease
from sandbox.providers.browser import BrowserMissing
from training.rollouts.slots import Stopped


@dataclass(frozen=True, slots=True)
class Broken:
    """The environment's fault, or at least not the policy's: again, on a fresh one."""

    cause: str
    detail: str


@dataclass(frozen=True, slots=True)
class Blocked:
    """No episode's fault: it waits, and its rollout pauses until a person has looked."""

    reason: str


@dataclass(frozen=True, slots=True)
class Hopeless:
    """It will never work: the rollout fails."""

    reason: str


@dataclass(frozen=True, slots=True)
class Left:
    """Nothing went wrong: the worker or the episode was stopped."""


Meaning: TypeAlias = Broken | Blocked | Hopeless | Left

_NAMES: tuple[tuple[type[BaseException], str], ...] = (
    (DesktopLost, "desktop lost"),
    (SetupFailed, "setup failed"),
    (LeaseOver, "lease lost"),
    (StaleLease, "lease lost"),
    (ProvisionFailed, "no environment"),
)


def of(error: BaseException, *, steps: int) -> Meaning:
    """Return what `error` means for an episode that had got `steps` steps far."""
    match error:
        case Stopped():
            return Left()
        case UnknownTask():
            return Hopeless(str(error))
        case EnvironmentFailure():
            return Broken(_name(error), str(error))
        case PolicyUnreachable() | PolicyBusy():
            return Blocked(f"the policy can't be reached: {error}")
        case PolicyMisconfigured():
            return Blocked(str(error))
        case PolicyRefused() if steps == 0:
            # What can't even be begun is the deployment's fault; later it is this prompt's.
            return Blocked(f"the policy refuses: {error}")
        case PolicyRefused():
            return Broken("policy refused", str(error))
        case PolicyError():
            return Broken("policy failed", f"{type(error).__name__}: {error}")
        case BlobError():
            return Blocked(f"pictures can't be stored: {error}")
        case BrowserMissing():
            return Blocked(str(error))
    return Broken("unexpected", "".join(traceback.format_exception(error))[-2000:])


def _name(error: EnvironmentFailure) -> str:
    cause = error.__cause__
    while isinstance(cause, EnvironmentFailure) and cause.__cause__ is not None:
        cause = cause.__cause__
    for kind, name in _NAMES:
        if isinstance(cause, kind):
            return name
    return "too slow" if cause is None else "environment error"
