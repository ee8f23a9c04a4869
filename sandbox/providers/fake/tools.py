"""What a fake desktop has beyond its picture: the guest's own parts, on a folder of this host.

Its shells and its Python are real and not jailed: what they are given is as trusted as the tests.
"""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from guest import errors, shell
from guest.fencing import Gate, Ledger, Result
from guest.files import Entry as Found
from guest.files import Home
from guest.processes import Place
from guest.python import Python
from guest.terminals import Terminals
from sandbox.capabilities import Entry, Output, Window
from sandbox.desktop.recorder import Recorder
from sandbox.provider import ActionFailed, ActionResult, DesktopLost, Frame, StaleLease

_PART = 4 * 1024 * 1024
_POLL_S = 0.02
_MAX_CLIPBOARD = 1024 * 1024


class Tools:
    """Files, terminals, Python, clipboard, windows and films of one fake desktop."""

    width: int
    height: int
    observe: Callable[[], Frame]

    def __init__(self, name: str) -> None:
        self._name = name
        self.lost = False
        self.home = Path(tempfile.mkdtemp(prefix="tandem-fake-"))
        self._gate = Gate()
        self._place = Place(
            self.home, {"HOME": str(self.home), "PATH": os.defpath, "SHELL": "/bin/bash"}
        )
        self._files = Home(self.home)
        self._terminals = Terminals(self._gate, self._place)
        self._python = Python(self._gate, self._place)
        self._ledger = Ledger()
        self._clipboard = ""
        self._windows: list[Window] = []
        self._recorder: Recorder | None = None

    # -- files -----------------------------------------------------------------------------

    def read_file(self, path: str) -> bytes:
        """Return a file of the home; raises ActionFailed."""
        with self._refusals():
            return self._files.read(path)

    def write_file(self, path: str, data: bytes, *, epoch: int) -> None:
        """Write a file of the home."""
        with self._refusals(epoch):
            self._files.write(path, data)

    def list_files(self, path: str = "") -> list[Entry]:
        """Return what is in a folder of the home."""
        with self._refusals():
            return [_entry(entry) for entry in self._files.entries(path)]

    def watch_files(self, path: str = "", *, seconds: float) -> Iterator[Entry]:
        """Yield what is made, written or moved below `path` until `seconds` have passed."""
        deadline = time.monotonic() + seconds
        with self._refusals():
            known = set(self._files.changed(path, since_us=0))
        while time.monotonic() < deadline:
            with self._refusals():
                now = set(self._files.changed(path, since_us=0))
            yield from (_entry(entry) for entry in now - known)
            known |= now
            time.sleep(_POLL_S)

    def download(self, path: str, *, limit: int = 1 << 31) -> Iterator[bytes]:
        """Yield a file in parts."""
        offset = 0
        while True:
            with self._refusals():
                data, size, _ = self._files.read_part(path, offset=offset, length=_PART)
            if size > limit:
                raise ActionFailed(f"{path} has {size} bytes, more than the {limit} allowed")
            if data:
                yield data
            offset += len(data)
            if offset >= size:
                return

    def upload(self, path: str, parts: Iterable[bytes], *, epoch: int) -> None:
        """Write a file, whole or not at all."""
        upload, offset = uuid.uuid4().hex, 0
        for part in (*parts, b""):
            with self._refusals(epoch):
                self._files.write_part(path, part, offset=offset, upload=upload, last=not part)
            offset += len(part)

    # -- terminals and Python -----------------------------------------------------------------

    def open_terminal(
        self,
        *,
        epoch: int,
        columns: int = 80,
        rows: int = 24,
        command: str = "",
        timeout_ms: int = 0,
        action_id: str = "",
    ) -> str:
        """Start a shell (or `command`) and return its id."""

        def work() -> Result:
            return Result(
                self._terminals.open(
                    command, epoch=epoch, columns=columns, rows=rows, timeout_ms=timeout_ms
                )
            )

        with self._refusals():
            return self._ledger.once(action_id or uuid.uuid4().hex, work)[0].output

    def write_terminal(
        self, terminal: str, data: bytes, *, epoch: int, action_id: str = ""
    ) -> None:
        """Enter `data` as if typed."""
        with self._refusals():
            self._terminals.write(
                terminal, data, epoch=epoch, action_id=action_id or uuid.uuid4().hex
            )

    def read_terminal(self, terminal: str, *, offset: int, wait_ms: int = 1000) -> Output:
        """Return what came after `offset`, waiting up to `wait_ms` for something."""
        with self._refusals():
            return Output(*self._terminals.find(terminal).read(offset, wait_ms))

    def resize_terminal(self, terminal: str, *, columns: int, rows: int, epoch: int) -> None:
        """Change the size of a terminal."""
        with self._refusals():
            self._terminals.resize(terminal, columns=columns, rows=rows, epoch=epoch)

    def close_terminal(self, terminal: str, *, epoch: int) -> None:
        """Kill what runs in it; fine if it has ended."""
        with self._refusals():
            self._terminals.close(terminal, epoch=epoch)

    def run_python(self, code: str, *, epoch: int, action_id: str, timeout_ms: int = 30_000) -> str:
        """Run `code` in the desktop's one Python."""

        def work() -> Result:
            return self._python.run(code, epoch=epoch, timeout_ms=timeout_ms)

        with self._refusals():
            return self._ledger.once(action_id, work)[0].output

    def _run(self, command: str, timeout_ms: int) -> ActionResult:
        done = shell.run(command, timeout_ms=timeout_ms, place=self._place)
        return ActionResult(output=done.output, exit_code=done.exit_code)

    # -- clipboard, windows, film -----------------------------------------------------------

    def clipboard(self) -> str:
        """Return the clipboard's text."""
        self._here()
        return self._clipboard

    def set_clipboard(self, text: str, *, epoch: int) -> None:
        """Put a text of at most 1 MiB on the clipboard."""
        self._here()
        self._check(epoch)
        if len(text.encode()) > _MAX_CLIPBOARD:
            raise ActionFailed(f"a clipboard text has at most {_MAX_CLIPBOARD} bytes")
        self._clipboard = text

    def windows(self) -> list[Window]:
        """Return a window for every program that was launched."""
        self._here()
        return list(self._windows)

    def activate_window(self, window: str, *, epoch: int) -> None:
        """Bring a window forward."""
        self._known(window, epoch)
        self._windows = [replace(w, active=w.id == window) for w in self._windows]

    def close_window(self, window: str, *, epoch: int) -> None:
        """Close a window."""
        self._known(window, epoch)
        self._windows = [w for w in self._windows if w.id != window]

    def start_recording(self, *, epoch: int, fps: int = 10) -> None:
        """Film the picture from here on."""
        self._here()
        self._check(epoch)
        if self._recorder is not None:
            raise ActionFailed("a recording is under way already: stop it first")
        self._recorder = Recorder(self.observe, self.width, self.height, fps=fps)

    def stop_recording(self, *, epoch: int) -> bytes:
        """Return the film: WebM."""
        self._here()
        self._check(epoch)
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            raise ActionFailed("no recording is under way")
        return recorder.stop()

    def _add_window(self, program: str) -> None:
        box = (0, 0, self.width, self.height)
        self._windows = [replace(window, active=False) for window in self._windows]
        self._windows.append(Window(uuid.uuid4().hex, program, program, box, active=True))

    def _known(self, window: str, epoch: int) -> None:
        self._here()
        self._check(epoch)
        if window not in [w.id for w in self._windows]:
            raise ActionFailed(f"no window {window}: it was closed")

    # -- who may -----------------------------------------------------------------------------

    def _let_go(self) -> None:
        self._terminals.close_all()
        self._python.close()

    def _here(self) -> None:
        if self.lost:
            raise DesktopLost(f"{self._name} does not answer")

    def _check(self, epoch: int) -> None:
        if epoch != self._gate.epoch:
            raise StaleLease(f"epoch {epoch} is not this computer's epoch {self._gate.epoch}")

    @contextmanager
    def _refusals(self, epoch: int | None = None) -> Iterator[None]:
        """Say what the guest's parts refuse as a desktop does."""
        self._here()
        if epoch is not None:
            self._check(epoch)
        try:
            yield
        except errors.StaleLease as error:
            raise StaleLease(str(error)) from error
        except errors.GuestError as error:
            raise ActionFailed(str(error)) from error


def _entry(found: Found) -> Entry:
    return Entry(found.path, found.folder, found.size, found.modified_at)
