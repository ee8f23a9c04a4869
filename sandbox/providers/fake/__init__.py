"""Computers that exist in this process only: one text box on a picture. For tests of what is above.

They keep the same promises as real ones (epochs, action ids, a new boot_id for every start), and
the same contract suite proves it.
"""

from __future__ import annotations

import io
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace

from PIL import Image, ImageDraw

from sandbox.provider import (
    ActionFailed,
    ActionResult,
    Desktop,
    DesktopLost,
    Frame,
    Handle,
    ProvisionFailed,
    SandboxSpec,
    StaleLease,
)
from sandbox.providers.fake.tools import Tools
from trajectory import Action, Click, Drag, Element, Scroll, Shell, Type, target
from trajectory.keys import canonical_key

BOX = (40, 40, 400, 160)  # left, top, width, height of the text box; typing goes there once clicked
_COMPUTERS: dict[str, _Computer] = {}


class FakeProvider:
    """Every instance in this process sees the same computers."""

    name = "fake"

    def start(self, spec: SandboxSpec) -> Handle:
        """Make a computer; at once."""
        if spec.name in _COMPUTERS:
            raise ProvisionFailed(f"a sandbox {spec.name} exists already: stop it first")
        handle = Handle(provider=self.name, name=spec.name, boot_id=uuid.uuid4().hex)
        _COMPUTERS[spec.name] = _Computer(handle, spec)
        return handle

    def connect(self, handle: Handle) -> Desktop:
        """Return the computer behind `handle`; raises DesktopLost."""
        if not self.alive(handle):
            raise DesktopLost(f"{handle.name} does not run any more")
        return _COMPUTERS[handle.name]

    def alive(self, handle: Handle) -> bool:
        """Whether this very start of the computer still runs."""
        computer = _COMPUTERS.get(handle.name)
        return (
            computer is not None and computer.handle.boot_id == handle.boot_id and not computer.lost
        )

    def stop(self, handle: Handle) -> None:
        """Forget the computer and remove its home."""
        computer = _COMPUTERS.get(handle.name)
        if computer is None or handle.boot_id not in ("", computer.handle.boot_id):
            return
        del _COMPUTERS[handle.name]
        computer.lost = True
        computer._let_go()
        shutil.rmtree(computer.home, ignore_errors=True)

    def running(self) -> list[Handle]:
        """Return every computer of this process."""
        return [computer.handle for computer in _COMPUTERS.values()]

    def kill(self, handle: Handle) -> None:
        """Make the computer die as `kill -9` would: it stays in running() and answers nothing."""
        _COMPUTERS[handle.name].lost = True


class _Computer(Tools):
    """A desktop with one text box: a click into it gives it the focus, typing fills it."""

    def __init__(self, handle: Handle, spec: SandboxSpec) -> None:
        super().__init__(handle.name)
        self.handle = handle
        self.width, self.height = spec.width, spec.height
        self.performed: list[Action] = []
        self.text = ""
        self._focused = False
        self._pointer = (0, 0)
        self._seq = 0
        self._results: dict[str, Future[ActionResult]] = {}
        self._lock = threading.RLock()

    def health(self) -> dict[str, object]:
        """Return {"boot_id", "epoch", "ready"}."""
        self._here()
        return {"boot_id": self.handle.boot_id, "epoch": self._gate.epoch, "ready": True}

    def fence(self, epoch: int) -> None:
        """Raise the epoch; raises StaleLease if it is above `epoch` already."""
        self._here()
        now = self._gate.raise_to(epoch, released=self._let_go)
        if now != epoch:
            raise StaleLease(f"{self.handle.name} is at epoch {now}, above {epoch}")

    def observe(self, *, elements: bool = False) -> Frame:
        """Draw the text box, what it holds, and the pointer."""
        self._here()
        with self._lock:
            self._seq += 1
            found = (Element("textbox", "note", BOX, self.text, self._focused),)
            return Frame(
                png=self._picture(),
                width=self.width,
                height=self.height,
                elements=found if elements else None,
                url="",
                captured_at=time.time(),
                seq=self._seq,
            )

    def perform(self, action: Action, *, epoch: int, action_id: str) -> ActionResult:
        """Do `action` once."""
        return self._once(action_id, epoch, lambda: self._do(action))

    def settle(self, *, quiet_ms: int = 150, max_ms: int = 2000) -> bool:
        """Nothing moves by itself here."""
        self._here()
        return True

    def shell(
        self, command: str, *, epoch: int, action_id: str, timeout_ms: int = 30_000
    ) -> ActionResult:
        """Run `command` for real, in the computer's own home folder."""
        return self._once(action_id, epoch, lambda: self._run(command, timeout_ms))

    def launch(self, argv: Sequence[str], *, epoch: int, action_id: str) -> None:
        """Pretend that a program opens."""
        self._once(action_id, epoch, lambda: self._started(argv))

    def evaluate(self, expression: str) -> object:
        """There is no browser here."""
        self._here()
        raise ActionFailed("a fake desktop has no page")

    def close(self) -> None:
        """Nothing is held."""

    def _once(self, action_id: str, epoch: int, work: Callable[[], ActionResult]) -> ActionResult:
        self._here()
        with self._lock:
            known = self._results.get(action_id)
            if known is None:
                self._check(epoch)
                mine: Future[ActionResult] = Future()
                self._results[action_id] = mine
        if known is not None:
            return replace(known.result(), replayed=True)
        try:
            mine.set_result(work())
        except BaseException as error:
            mine.set_exception(error)
        return mine.result()

    def _do(self, action: Action) -> ActionResult:
        if isinstance(action, Shell):
            return self._run(action.command, action.timeout_ms)
        with self._lock:
            points = action.path if isinstance(action, Drag) else ()
            place = target(action)
            for x, y in (*points, *((place,) if place else ())):
                if not (0 <= x < self.width and 0 <= y < self.height):
                    raise ActionFailed(f"({x}, {y}) is outside the screen")
            self._check_keys(action)
            if place is not None:
                self._pointer = points[-1] if points else place
            if isinstance(action, Click):
                left, top, width, height = BOX
                self._focused = left <= action.x < left + width and top <= action.y < top + height
            elif isinstance(action, Type) and self._focused:
                self.text += action.text
            elif isinstance(action, Scroll):
                self.text = self.text[: max(0, len(self.text) - abs(action.dy))]
            self.performed.append(action)
        return ActionResult()

    def _check_keys(self, action: Action) -> None:
        keys = (*getattr(action, "keys", ()), *getattr(action, "modifiers", ()))
        if key := getattr(action, "key", ""):
            keys = (*keys, key)
        try:
            for name in keys:
                canonical_key(name)
        except ValueError as error:
            raise ActionFailed(str(error)) from error

    def _started(self, argv: Sequence[str]) -> ActionResult:
        if not argv:
            raise ActionFailed("nothing to launch: argv is empty")
        self.text += f"[{argv[0]}]"
        self._add_window(argv[0])
        return ActionResult()

    def _picture(self) -> bytes:
        picture = Image.new("RGB", (self.width, self.height), "#2f6478")
        draw = ImageDraw.Draw(picture)
        left, top, width, height = BOX
        outline = "#ffd166" if self._focused else "#10242c"
        draw.rectangle((left, top, left + width, top + height), "#ffffff", outline, 3)
        draw.text((left + 10, top + 20), self.text[-60:].encode("ascii", "replace"), "#000000")
        x, y = self._pointer
        draw.line((x - 6, y, x + 6, y), "#ff3366", 2)
        draw.line((x, y - 6, x, y + 6), "#ff3366", 2)
        out = io.BytesIO()
        picture.save(out, "PNG", compress_level=1)
        return out.getvalue()
