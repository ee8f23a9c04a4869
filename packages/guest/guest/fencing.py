"""Who may act (the epoch), and doing each action once (its id)."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass

from guest.errors import StaleLease

KEPT_RESULTS = 1000


@dataclass(frozen=True, slots=True)
class Result:
    """What an action gave; `exit_code` is None for anything but a command."""

    output: str = ""
    exit_code: int | None = None


class Gate:
    """Holds the epoch, and lets one input action of that epoch through at a time."""

    def __init__(self, epoch: int = 0) -> None:
        self._epoch = epoch
        self._lock = threading.RLock()

    @property
    def epoch(self) -> int:
        return self._epoch

    def raise_to(self, epoch: int, *, released: Callable[[], None]) -> int:
        """Raise the epoch, never lower it; once it returns no older action is under way.

        `released` is called with the gate held if the epoch changed: let go of keys and buttons.
        """
        with self._lock:
            if epoch > self._epoch:
                self._epoch = epoch
                released()
            return self._epoch

    def start_over(self, *, released: Callable[[], None]) -> None:
        """Belong to nobody again, as a machine does that was forked or put back to a snapshot."""
        with self._lock:
            self._epoch = 0
            released()

    def check(self, epoch: int) -> None:
        """Raise StaleLease unless `epoch` is the computer's."""
        if epoch != self._epoch:
            raise StaleLease(
                f"epoch {epoch} is not this computer's epoch {self._epoch}: lease it again"
            )

    @contextmanager
    def entered(self, epoch: int) -> Iterator[None]:
        """Hold the mouse and keyboard for one action of `epoch`; raises StaleLease."""
        with self._lock:
            self.check(epoch)
            yield


class Ledger:
    """Remembers what each action_id gave: a retry gets the first result and does nothing."""

    def __init__(self, kept: int = KEPT_RESULTS) -> None:
        self._kept = kept
        self._results: OrderedDict[str, Future[Result]] = OrderedDict()
        self._lock = threading.Lock()

    def once(self, action_id: str, work: Callable[[], Result]) -> tuple[Result, bool]:
        """Return (result, replayed); a second caller waits for the first and shares its failure.

        A refusal for a stale epoch is not remembered: nothing was done under that id.
        """
        with self._lock:
            known = self._results.get(action_id)
            if known is None:
                mine: Future[Result] = Future()
                self._results[action_id] = mine
                self._forget_oldest()
        if known is not None:
            return known.result(), True
        try:
            mine.set_result(work())
        except StaleLease as error:
            with self._lock:
                self._results.pop(action_id, None)
            mine.set_exception(error)
        except BaseException as error:
            mine.set_exception(error)
        return mine.result(), False

    def _forget_oldest(self) -> None:
        for action_id in list(self._results):
            if len(self._results) <= self._kept:
                return
            if self._results[action_id].done():
                del self._results[action_id]
