"""BrowserPage: one page of a headless browser as a Desktop, with a fast path for agents."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from guest.page import ELEMENTS_JS, MAX_ELEMENTS
from sandbox.provider import ActionFailed, ActionResult, Frame, StaleLease
from sandbox.providers.browser import checkpoint, clipboard
from sandbox.providers.browser.checkpoint import Checkpoint
from sandbox.providers.browser.input import Command, Hands
from sandbox.providers.browser.spec import PageSpec
from sandbox.providers.browser.target import LOAD_S, Target
from trajectory import Action, Element, Navigate, NavigateBack, Wait

if TYPE_CHECKING:
    from sandbox.providers.browser.clock import Clock

_FRAME_S = 1 / 60
_FRAME_INPUT_S = 0.001  # input that is only delivered with a frame must have reached the page first
_REMEMBERED = 256
_ELEMENTS = f"{ELEMENTS_JS}({json.dumps({'screenWidth': 0})})"


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one step gave: the picture after it, the probe's JSON value, and what had to be answered.

    `png` is b"" if no picture was asked for; `elements` is None unless asked for.
    """

    png: bytes
    value: object
    elements: tuple[Element, ...] | None
    notes: tuple[str, ...]


class BrowserPage:
    """A page; implements sandbox.provider.Desktop. Calls of several threads wait for each other.

    A page that is gone raises DesktopLost with the cause from every call. There is no shell, and there
    are no files: those raise ActionFailed.
    """

    clock: Clock | None = None

    def __init__(self, target: Target, *, pid: int, closed: Callable[[BrowserPage], None]) -> None:
        self.spec: PageSpec = target.spec
        self.width, self.height = target.spec.width, target.spec.height
        self.target = target
        self.browser_pid = pid
        self.boot_id = uuid.uuid4().hex
        self.used_at = time.monotonic()
        self._closed = closed
        self._hands = Hands(self.width, self.height)
        self._clipboard = ""
        self._lock = threading.RLock()
        self._epoch = 0
        self._seq = 0
        self._results: OrderedDict[str, ActionResult] = OrderedDict()

    # -- the Desktop -------------------------------------------------------------------------

    def health(self) -> dict[str, object]:
        """Return {"boot_id", "epoch", "ready", "width", "height", "browser_pid"}."""
        return {
            "boot_id": self.boot_id,
            "epoch": self._epoch,
            "ready": not self.target.lost,
            "width": self.width,
            "height": self.height,
            "browser_pid": self.browser_pid,
        }

    def fence(self, epoch: int) -> None:
        """Raise the page's epoch; raises StaleLease if it is above `epoch` already."""
        with self._lock:
            if epoch < self._epoch:
                raise StaleLease(f"the page is at epoch {self._epoch}, above {epoch}")
            self._epoch = epoch

    def observe(self, *, elements: bool = False) -> Frame:
        """Run one frame and return what it shows. Raises DesktopLost."""
        with self._turn():
            png, url, found = self._look("location.href", elements, picture=True)
            self._seq += 1
            return Frame(
                png=png,
                width=self.width,
                height=self.height,
                elements=found,
                url=str(url),
                captured_at=time.time(),
                seq=self._seq,
            )

    def perform(self, action: Action, *, epoch: int, action_id: str) -> ActionResult:
        """Do `action` once; the same `action_id` again returns the first result.

        `output` says what the page asked or tried meanwhile: dialogs, windows, forbidden addresses.
        Raises StaleLease, ActionFailed, DesktopLost.
        """
        with self._turn():
            self._check(epoch)
            if (known := self._results.get(action_id)) is not None:
                return ActionResult(known.output, known.exit_code, replayed=True)
            self._act(action)
            result = ActionResult(output="\n".join(self._notes()))
            self._results[action_id] = result
            if len(self._results) > _REMEMBERED:
                self._results.popitem(last=False)
            return result

    def settle(self, *, quiet_ms: int = 150, max_ms: int = 2000) -> bool:
        """Run frames until the picture has not changed for `quiet_ms`; False if `max_ms` passed."""
        with self._turn():
            start = quiet_since = time.monotonic()
            before = b""
            while (now := time.monotonic()) - start < max_ms / 1000:
                picture = self.target.frame(picture=True)
                if picture != before:
                    before, quiet_since = picture, now
                elif now - quiet_since >= quiet_ms / 1000:
                    return True
                time.sleep(max(0.0, now + _FRAME_S - time.monotonic()))
            return False

    def evaluate(self, expression: str) -> object:
        """Return the JSON value of JavaScript; raises ActionFailed if it throws, DesktopLost."""
        with self._turn():
            return self.target.evaluate(expression)

    def shell(
        self, command: str, *, epoch: int, action_id: str, timeout_ms: int = 30_000
    ) -> ActionResult:
        """Raise ActionFailed: a browser page has no shell."""
        self._no("shell")

    def launch(self, argv: Sequence[str], *, epoch: int, action_id: str) -> None:
        """Raise ActionFailed: a browser page has no programs."""
        self._no("programs")

    def read_file(self, path: str) -> bytes:
        """Raise ActionFailed: a browser page has no files."""
        self._no("files")

    def write_file(self, path: str, data: bytes, *, epoch: int) -> None:
        """Raise ActionFailed: a browser page has no files."""
        self._no("files")

    def close(self) -> None:
        """Give the page back to its fleet; fine if it is gone already."""
        self._closed(self)

    # -- beyond the Desktop ------------------------------------------------------------------

    def navigate(self, url: str) -> None:
        """Open `url` and wait for its load event. Raises ActionFailed, DesktopLost."""
        with self._turn():
            self.target.navigate(url)

    def step(
        self,
        action: Action | None,
        *,
        probe: str = "",
        elements: bool = False,
        picture: bool = True,
    ) -> StepResult:
        """Do `action` (None: nothing), evaluate `probe`, run a frame: one synchronous observation.

        Two round trips: the input is handled before the probe is read and the frame is run. It is for
        the one who holds the page: no epoch, no action_id. Raises ActionFailed, DesktopLost.
        """
        with self._turn():
            if action is not None:
                self._act(action)
            png, value, found = self._look(probe, elements, picture)
            return StepResult(png, value, found, tuple(self._notes()))

    def checkpoint(self) -> Checkpoint:
        """Return what the page has stored, to be put back later. Raises ActionFailed, DesktopLost."""
        with self._turn():
            return checkpoint.take(self.target)

    def restore(self, taken: Checkpoint) -> None:
        """Open a checkpoint's address with what it had stored. Raises ActionFailed, DesktopLost."""
        with self._turn():
            checkpoint.put(self.target, taken)

    def frames(self, duration_ms: float) -> None:
        """Run frames at 60 a second for `duration_ms` of real time."""
        with self._turn():
            self._frames(duration_ms)

    # -- inside ------------------------------------------------------------------------------

    def _turn(self) -> threading.RLock:
        self.used_at = time.monotonic()
        return self._lock

    def _check(self, epoch: int) -> None:
        if epoch != self._epoch:
            raise StaleLease(f"the page is at epoch {self._epoch}, not {epoch}")

    def _notes(self) -> list[str]:
        notes, self.target.notes = self.target.notes, []
        return notes

    def _no(self, what: str) -> NoReturn:
        raise ActionFailed(f"a browser page has no {what}: use a desktop for this task")

    def _act(self, action: Action) -> None:
        try:
            commands = self._hands.commands(action)
        except ValueError as error:
            raise ActionFailed(str(error)) from error
        if commands is not None:
            self._deliver(commands)
            return
        match action:
            case Wait(duration_ms) if self.clock and self.clock.state().mode == "stepped":
                self.clock.step(duration_ms)  # on a stopped clock waiting costs no time of ours
            case Wait(duration_ms):
                self._frames(duration_ms)
            case Navigate(url):
                self.target.navigate(url)
            case NavigateBack():
                self.target.back()
            case _:
                self._no(f"way to do {type(action).__name__}")

    def _look(
        self, probe: str, elements: bool, picture: bool
    ) -> tuple[bytes, object, tuple[Element, ...] | None]:
        """Run the scripts and a frame; again if the page went elsewhere meanwhile.

        Of a page that never stays, what was read last.
        """
        target, deadline = self.target, time.monotonic() + LOAD_S
        while True:
            value = target.send_script(probe) if probe else None
            found = target.send_script(_ELEMENTS) if elements else None
            png = target.frame(picture=picture)
            try:
                seen = target.value(value) if value else None
                listed = _elements(target.value(found)) if found else None
            except ActionFailed:
                if not target.follow() or time.monotonic() > deadline:
                    raise
                continue
            if not target.follow() or time.monotonic() > deadline:
                return png, seen, listed

    def _deliver(self, commands: Sequence[Command]) -> None:
        """Send input ahead as far as it goes and return when the page has handled all of it."""
        target = self.target
        sent = []
        for command in commands:
            if command.pause_ms:
                self._frames(command.pause_ms)
            if command.clipboard in ("copy", "cut"):
                self._clipboard = str(target.evaluate(clipboard.COPY)) or self._clipboard
            reply = target.send(command.method, command.params)
            if command.frame:
                target.wait(reply, patience_s=_FRAME_INPUT_S)
                if command.heard_later:
                    target.frame(picture=False)
            else:
                sent.append(reply)
            if command.clipboard == "paste":
                target.wait(reply)
                target.evaluate(clipboard.paste(self._clipboard))
        for reply in sent:
            target.wait(reply)

    def _frames(self, duration_ms: float) -> None:
        end = time.monotonic() + duration_ms / 1000
        while (left := end - time.monotonic()) > 0:
            self.target.frame(picture=False)
            time.sleep(min(_FRAME_S, left))


def _elements(found: Any) -> tuple[Element, ...]:
    """Return the elements with boxes in pixels of the page's picture."""
    if not isinstance(found, dict):
        raise ActionFailed("the page gave no list of elements")
    x, y = (round(n) for n in found["origin"])
    return tuple(
        Element(
            role=str(record["role"]),
            name=str(record["name"]),
            box=(
                int(record["box"][0]) - x,
                int(record["box"][1]) - y,
                int(record["box"][2]),
                int(record["box"][3]),
            ),
            value=str(record["value"]),
            focused=bool(record["focused"]),
        )
        for record in found["elements"][:MAX_ELEMENTS]
    )
