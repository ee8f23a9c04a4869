"""What some computers can do beyond `sandbox.provider`: one small protocol each.

A caller asks `isinstance(desktop, Terminals)`; a computer that can't do a thing does not have its methods.
Everything that changes the computer carries the lease's `epoch` and raises StaleLease.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from sandbox.dial import Gateway
from sandbox.provider import Desktop, Handle
from trajectory import Element


@runtime_checkable
class Snapshots(Protocol):
    """A Provider that can put a computer back to an earlier moment."""

    def snapshot(self, handle: Handle, name: str) -> None:
        """Keep the computer's whole state (memory, disk, devices) as `name`; raises SandboxError."""
        ...

    def restore(self, handle: Handle, name: str) -> Handle:
        """Go back to `name` and return the handle of the new boot_id; epoch and ledger start afresh.

        Clock, randomness, machine id and tokens are renewed. Raises SandboxError.
        """
        ...

    def snapshots(self, handle: Handle) -> list[str]: ...

    def forget(self, handle: Handle, name: str) -> None:
        """Delete a snapshot; fine if there is none."""
        ...


@runtime_checkable
class Reachable(Protocol):
    """A Provider whose computers can also be used from another machine than their host."""

    def connect_through(self, handle: Handle, gateway: Gateway) -> Desktop:
        """Return the desktop behind `handle` on the host of `gateway`; raises DesktopLost, StaleLease."""
        ...


@runtime_checkable
class OwnScreen(Protocol):
    """A Provider whose computers show the screen that they have, whatever size was asked for."""

    def screen(self, handle: Handle) -> tuple[int, int]:
        """Return width and height in pixels; raises DesktopLost."""
        ...


@runtime_checkable
class Limited(Protocol):
    """A Provider that can say which of its limits a computer ran into, until it is stopped."""

    def causes(self, handle: Handle) -> list[str]:
        """Return what the kernel counted, in words: processes ended for memory or refused."""
        ...

    def refused(self, handle: Handle) -> list[dict[str, object]]:
        """Return where it was not let: host, port, why. The computer chose host and port."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder of the desktop's home: `path` relative to it, `size` in bytes."""

    path: str
    folder: bool
    size: int
    modified_at: float


@runtime_checkable
class FileTree(Protocol):
    """A Desktop whose home can be looked through; nothing outside the home, links never followed out.

    A file's name is the guest's: it may hold newlines and escapes, and must be shown as text.
    """

    def list_files(self, path: str = "") -> list[Entry]:
        """Return what is in one folder, by name; at most 5000 entries, else ActionFailed."""
        ...

    def watch_files(self, path: str = "", *, seconds: float) -> Iterator[Entry]:
        """Yield what is made, written or moved below `path` until `seconds` have passed."""
        ...

    def download(self, path: str, *, limit: int = ...) -> Iterator[bytes]:
        """Yield a file of any size up to `limit` bytes in parts; ActionFailed if it changes."""
        ...

    def upload(self, path: str, parts: Iterable[bytes], *, epoch: int) -> None:
        """Write a file of any size, whole or not at all."""
        ...


@dataclass(frozen=True, slots=True)
class Output:
    """What a terminal said; `offset` is behind it: ask from there next.

    Older output than the terminal keeps (1 MiB) is left out: `data` is then shorter than the way
    from the offset asked to `offset`. `exit_code` comes with the last output of an ended program.
    """

    data: bytes
    offset: int
    exit_code: int | None = None


@runtime_checkable
class Terminals(Protocol):
    """A Desktop with shell sessions on a PTY; the same file tree that the screen sees.

    They end with the epoch that opened them. A repeated `action_id` does nothing a second time;
    "" stands for a fresh one.
    """

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
        """Start a shell (or `command`) and return its id; ActionFailed beyond 8 at once.

        It is ended after `timeout_ms`, with exit code 124; 0: when it is closed.
        """
        ...

    def write_terminal(
        self, terminal: str, data: bytes, *, epoch: int, action_id: str = ""
    ) -> None:
        """Enter `data` as if typed; at most 64 KiB."""
        ...

    def read_terminal(self, terminal: str, *, offset: int, wait_ms: int = 1000) -> Output:
        """Return what came after `offset`, waiting up to `wait_ms` for something."""
        ...

    def resize_terminal(self, terminal: str, *, columns: int, rows: int, epoch: int) -> None: ...

    def close_terminal(self, terminal: str, *, epoch: int) -> None:
        """Kill what runs in it; fine if it has ended."""
        ...


@runtime_checkable
class Python(Protocol):
    """A Desktop with one Python session whose names last from call to call."""

    def run_python(self, code: str, *, epoch: int, action_id: str, timeout_ms: int = 30_000) -> str:
        """Return what `code` printed, the value of its last expression or its traceback.

        At `timeout_ms` it is interrupted; if that does not help Python is ended, with its names.
        """
        ...


@runtime_checkable
class Clipboard(Protocol):
    """A Desktop whose clipboard can be read and set; at most 1 MiB of text."""

    def clipboard(self) -> str: ...

    def set_clipboard(self, text: str, *, epoch: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Window:
    """A window: `box` is (left, top, width, height) in pixels of the frame."""

    id: str
    title: str
    program: str
    box: tuple[int, int, int, int]
    active: bool = False


@runtime_checkable
class Windows(Protocol):
    """A Desktop that knows its windows."""

    def windows(self) -> list[Window]: ...

    def activate_window(self, window: str, *, epoch: int) -> None: ...

    def close_window(self, window: str, *, epoch: int) -> None: ...


@runtime_checkable
class Accessibility(Protocol):
    """A Desktop with an accessibility tree of all its programs."""

    def accessibility(self, *, limit: int = 2000) -> list[Element]: ...


@runtime_checkable
class Recordings(Protocol):
    """A Desktop that can film its screen; a film ends with the object that makes it."""

    def start_recording(self, *, epoch: int, fps: int = 10) -> None: ...

    def stop_recording(self, *, epoch: int) -> bytes:
        """Return the film: WebM."""
        ...


@runtime_checkable
class Ports(Protocol):
    """A Desktop whose programs' TCP ports (on its loopback) can be reached from outside."""

    def ports(self) -> list[int]:
        """Return what listens in the computer, but for its own guest."""
        ...
