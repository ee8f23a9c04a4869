"""A machine's memory from outside: the pages that it wrote since it was forked.

A fork maps its template's memory privately, so the kernel knows its own pages: those that are no
longer the file's. They are a few MiB of an idle desktop where the whole is 1.5 GiB, and QEMU's own
snapshots read and write the whole. https://docs.kernel.org/admin-guide/mm/pagemap.html
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from sandbox.provider import DesktopLost, SandboxError

PAGE = 4096
_ENTRY = 8
# The highest byte of a page's entry: bit 7 present, 6 swapped, 5 a page of a file.
_OWN = bytes(int(bool(flags & 0xC0) and not flags & 0x20) for flags in range(256))
# Together at most 1024: one read gives no more than 2 GiB, and a copy of all is not wanted either.
_RUN = re.compile(b"\x01{1,1024}")


@dataclass(frozen=True, slots=True)
class Region:
    """One block of a machine's memory by QEMU's name; `start` in QEMU's memory, `size` in bytes."""

    name: str
    start: int
    size: int


def note(folder: Path, regions: list[Region]) -> None:
    """Remember where the memory of the machine in `folder` lies: the same as long as QEMU runs."""
    (folder / "memory.json").write_text(json.dumps([asdict(region) for region in regions]))


def noted(folder: Path) -> list[Region]:
    return [Region(**region) for region in json.loads((folder / "memory.json").read_text())]


@contextmanager
def changed(pid: int) -> Iterator[Changes]:
    """Yield what tells the pages of a machine that stands still; raises SandboxError."""
    opened: list[int] = []
    try:
        with _told():
            for name in ("mem", "pagemap"):
                opened.append(os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC))
        yield Changes(*opened)
    finally:
        for fd in opened:
            os.close(fd)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise SandboxError(
            "a snapshot reads QEMU's memory: run the host as root (CAP_SYS_PTRACE)"
        ) from error
    except OSError as error:
        raise DesktopLost(f"QEMU's memory can't be read: {error}") from error


class Changes:
    """The changed pages of one QEMU, by descriptors of its memory and its page map."""

    def __init__(self, memory: int, pagemap: int) -> None:
        self._memory, self._pagemap = memory, pagemap

    def of(self, region: Region) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, bytes) of changed pages, at most 4 MiB at once; whole pages."""
        size = region.size // PAGE * _ENTRY
        with _told():
            entries = os.pread(self._pagemap, size, region.start // PAGE * _ENTRY)
        if len(entries) != size:
            raise DesktopLost("QEMU's memory is not where it was: it has ended")
        for run in _RUN.finditer(entries[_ENTRY - 1 :: _ENTRY].translate(_OWN)):
            offset, wanted = run.start() * PAGE, (run.end() - run.start()) * PAGE
            with _told():
                data = os.pread(self._memory, wanted, region.start + offset)
            if len(data) != wanted:
                raise DesktopLost("QEMU's memory can't be read: it has ended")
            yield offset, data
