"""What a whole desktop can do beyond its screen, as sandbox.capabilities names it."""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress

from sandbox.capabilities import Entry, Output, Window
from sandbox.desktop.answer import Answer
from sandbox.desktop.recorder import Recorder
from sandbox.desktop.screen import GuestScreen, result
from sandbox.provider import ActionFailed, DesktopLost, SandboxError, StaleLease
from trajectory import Element

MAX_PART = 4 * 1024 * 1024
MAX_OUTPUT = 1024 * 1024
MAX_DOWNLOAD = 2 * 1024 * 1024 * 1024
_MAX_PATH = 4096
_MAX_ENTRIES = 5001
_MAX_CLIPBOARD = 1024 * 1024
_WATCH_MS = 5000


class GuestDesktop(GuestScreen):
    """A whole desktop: its screen, and its programs, files, terminals and Python."""

    _recorder: Recorder | None = None

    # -- files -----------------------------------------------------------------------------

    def list_files(self, path: str = "") -> list[Entry]:
        """Return what is in a folder of the home; raises ActionFailed."""
        return [_entry(e) for e in self._entries("/v1/files/list", path=path)]

    def watch_files(self, path: str = "", *, seconds: float) -> Iterator[Entry]:
        """Yield what is made, written or moved below `path` until `seconds` have passed.

        A question that is repeated gets the same answer, so nothing is missed when one is lost.
        """
        deadline = time.monotonic() + seconds
        since, known = 0, dict[str, int]()
        for entry in self._entries("/v1/files/changed", path=path, known=[], wait_ms=0):
            since = max(since, entry.number("changed_us"))
            known[_mark(entry)] = entry.number("changed_us")
        while (left := deadline - time.monotonic()) > 0:
            wait_ms = min(int(left * 1000) + 1, _WATCH_MS)
            fresh = self._entries(
                "/v1/files/changed",
                wait_ms / 1000,
                path=path,
                since_us=since,
                known=list(known),
                wait_ms=wait_ms,
            )
            for entry in fresh:
                since = max(since, entry.number("changed_us"))
                known[_mark(entry)] = entry.number("changed_us")
            # Only what shares the newest moment can come again.
            known = {mark: at for mark, at in known.items() if at >= since}
            yield from map(_entry, fresh)

    def download(self, path: str, *, limit: int = MAX_DOWNLOAD) -> Iterator[bytes]:
        """Yield a file of any size up to `limit` bytes, part by part; raises ActionFailed.

        A file that is changed meanwhile is refused: half of it would be old.
        """
        offset, first = 0, ""
        while True:
            body = {"path": path, "offset": offset, "length": MAX_PART}
            answer, data = self._wire.ask("POST", "/v1/files/part", body)
            size, version = answer.number("size"), answer.text("version", limit=200)
            if size > limit:
                raise ActionFailed(f"{path} has {size} bytes, more than the {limit} allowed")
            if version != (first := first or version):
                raise ActionFailed(f"{path} was changed while it was read")
            if len(data) > MAX_PART or offset + len(data) > size or (not data and offset < size):
                raise DesktopLost(f"{self._handle.name} gave another length of {path} than it said")
            if data:
                yield data
            offset += len(data)
            if offset == size:
                return

    def upload(self, path: str, parts: Iterable[bytes], *, epoch: int) -> None:
        """Write a file of any size, whole or not at all; raises ActionFailed, StaleLease."""
        upload, offset = uuid.uuid4().hex, 0
        for part in parts:
            for start in range(0, len(part), MAX_PART):
                piece = part[start : start + MAX_PART]
                self._upload(path, piece, offset, upload, epoch, last=False)
                offset += len(piece)
        self._upload(path, b"", offset, upload, epoch, last=True)

    def _upload(
        self, path: str, data: bytes, offset: int, upload: str, epoch: int, *, last: bool
    ) -> None:
        body = {"path": path, "offset": offset, "upload": upload, "epoch": epoch, "last": last}
        self._wire.ask("POST", "/v1/files/upload", body, payload=data)

    def _entries(self, route: str, lasts_s: float = 0.0, /, **body: object) -> list[Answer]:
        return self._wire.post(route, lasts_s, **body).records("entries", limit=_MAX_ENTRIES)

    # -- terminals -------------------------------------------------------------------------

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
        """Start a shell (or `command`) and return its id; raises StaleLease, ActionFailed."""
        answer = self._wire.post(
            "/v1/terminals/open",
            epoch=epoch,
            columns=columns,
            rows=rows,
            command=command,
            timeout_ms=timeout_ms,
            action_id=action_id or uuid.uuid4().hex,
        )
        return answer.text("output", limit=64)

    def write_terminal(
        self, terminal: str, data: bytes, *, epoch: int, action_id: str = ""
    ) -> None:
        """Enter `data`, at most 64 KiB, as if typed; the same action_id again enters nothing."""
        self._wire.post(
            "/v1/terminals/write",
            terminal=terminal,
            data=base64.b64encode(data).decode(),
            epoch=epoch,
            action_id=action_id or uuid.uuid4().hex,
        )

    def read_terminal(self, terminal: str, *, offset: int, wait_ms: int = 1000) -> Output:
        """Return what came after `offset`, waiting up to `wait_ms` for something."""
        answer, data = self._wire.ask(
            "POST",
            "/v1/terminals/read",
            {"terminal": terminal, "offset": offset, "wait_ms": wait_ms},
            lasts_s=wait_ms / 1000,
        )
        if len(data) > MAX_OUTPUT:
            raise DesktopLost(f"{self._handle.name} gave more than it keeps of a terminal's output")
        return Output(data, answer.number("offset"), answer.exit_code())

    def resize_terminal(self, terminal: str, *, columns: int, rows: int, epoch: int) -> None:
        """Change the size of a terminal, in characters."""
        self._wire.post(
            "/v1/terminals/resize", terminal=terminal, columns=columns, rows=rows, epoch=epoch
        )

    def close_terminal(self, terminal: str, *, epoch: int) -> None:
        """Kill what runs in it; fine if it has ended."""
        self._wire.post("/v1/terminals/close", terminal=terminal, epoch=epoch)

    # -- Python, clipboard, windows, ports ---------------------------------------------------

    def run_python(self, code: str, *, epoch: int, action_id: str, timeout_ms: int = 30_000) -> str:
        """Run `code` and return what it printed, its last expression's value or its traceback."""
        answer = self._wire.post(
            "/v1/python",
            2 * timeout_ms / 1000,  # it may wait for another run first
            code=code,
            epoch=epoch,
            action_id=action_id,
            timeout_ms=timeout_ms,
        )
        return result(answer).output

    def clipboard(self) -> str:
        """Return the clipboard's text, "" if it holds none; raises ActionFailed if it is too big."""
        return self._wire.post("/v1/clipboard/read").text("text", limit=_MAX_CLIPBOARD)

    def set_clipboard(self, text: str, *, epoch: int) -> None:
        """Put a text on the clipboard; raises ActionFailed beyond 1 MiB."""
        self._wire.post("/v1/clipboard/write", text=text, epoch=epoch)

    def windows(self) -> list[Window]:
        """Return the windows, the oldest first."""
        return [
            Window(
                id=window.text("id", limit=32),
                title=window.text("title", limit=1000),
                program=window.text("program", limit=1000),
                box=window.box(),
                active=window.flag("active"),
            )
            for window in self._wire.post("/v1/windows").records("windows", limit=500)
        ]

    def activate_window(self, window: str, *, epoch: int) -> None:
        """Bring a window forward; raises ActionFailed if there is none."""
        self._wire.post("/v1/windows/activate", window=window, epoch=epoch)

    def close_window(self, window: str, *, epoch: int) -> None:
        """Ask a window to close, as its button does; its program may ask back."""
        self._wire.post("/v1/windows/close", window=window, epoch=epoch)

    def accessibility(self, *, limit: int = 2000) -> list[Element]:
        """Return what all programs show and name, window by window; raises ActionFailed."""
        answer = self._wire.post("/v1/accessibility", limit=limit)
        return [element.element() for element in answer.records("elements", limit=limit)]

    def ports(self) -> list[int]:
        """Return the TCP ports that listen in the computer, but for its own guest's."""
        found = self._wire.post("/v1/ports").numbers("ports", limit=65536)
        return [port for port in found if 0 < port < 65536]

    # -- film --------------------------------------------------------------------------------

    def start_recording(self, *, epoch: int, fps: int = 10) -> None:
        """Film the screen from here on; the film is made by this object, of what it is shown."""
        self._check(epoch)
        if self._recorder is not None:
            raise ActionFailed("a recording is under way already: stop it first")
        self._recorder = Recorder(self.observe, self.width, self.height, fps=fps)

    def stop_recording(self, *, epoch: int) -> bytes:
        """Return the film: WebM. Raises ActionFailed if none is under way."""
        self._check(epoch)
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            raise ActionFailed("no recording is under way")
        return recorder.stop()

    def close(self) -> None:
        """Let go of the connection, and of a film that nobody asked for."""
        if self._recorder is not None:
            with suppress(SandboxError):
                self._recorder.stop()
        super().close()

    def _check(self, epoch: int) -> None:
        now = self._wire.ask("GET", "/v1/health")[0].number("epoch")
        if now != epoch:
            raise StaleLease(f"{self._handle.name} is at epoch {now}, not {epoch}")


def _mark(entry: Answer) -> str:
    """Return what the guest calls one change of one file."""
    return f"{entry.number('changed_us')} {entry.number('size')} {entry.text('path')}"


def _entry(answer: Answer) -> Entry:
    """Return an Entry; raises DesktopLost for a path that is not below the home."""
    path = answer.text("path", limit=_MAX_PATH)
    if path.startswith("/") or not path or ".." in path.split("/") or "\0" in path:
        raise DesktopLost(f"{answer.name} lists a file outside the home: {path[:100]!r}")
    return Entry(
        path=path,
        folder=answer.flag("folder"),
        size=answer.number("size"),
        modified_at=answer.decimal("modified_at"),
    )
