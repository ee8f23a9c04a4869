"""What a fork has changed: its own pages told from its template's, and the stream made of them."""

from __future__ import annotations

import ctypes
import errno
import io
import mmap
import os
import struct
from pathlib import Path

import pytest

from sandbox.provider import DesktopLost, SandboxError
from sandbox.providers.qemu import memory, snapshots, stream
from sandbox.providers.qemu.memory import PAGE, Region
from sandbox.providers.qemu.qmp import Monitor


def test_only_the_pages_that_were_written_are_a_forks_own(tmp_path: Path) -> None:
    template = tmp_path / "ram"
    template.write_bytes(bytes(range(64)) * PAGE)
    with template.open("rb") as file:
        ram = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
    held = ctypes.c_char.from_buffer(ram)
    region = Region("ram", ctypes.addressof(held), len(ram))
    assert ram[9 * PAGE : 9 * PAGE + 3] == b"\0\1\2"  # read, so present, but still the file's
    for page in (3, 4, 63):
        ram[page * PAGE] = 255
    with memory.changed(os.getpid()) as changes:
        found = list(changes.of(region))
    assert [(offset, len(data)) for offset, data in found] == [
        (3 * PAGE, 2 * PAGE),
        (63 * PAGE, PAGE),
    ]
    assert found[0][1] == ram[3 * PAGE : 5 * PAGE]
    del held
    ram.close()


def test_many_pages_are_read_in_parts(tmp_path: Path) -> None:
    """One read gives at most 2 GiB, and a machine may have changed more than that in a row."""
    ram = mmap.mmap(-1, 1030 * PAGE, mmap.MAP_PRIVATE)
    ram[:] = b"x" * len(ram)
    held = ctypes.c_char.from_buffer(ram)
    with memory.changed(os.getpid()) as changes:
        found = list(changes.of(Region("ram", ctypes.addressof(held), len(ram))))
    assert [(offset // PAGE, len(data) // PAGE) for offset, data in found] == [(0, 1024), (1024, 6)]
    assert b"".join(data for _, data in found) == ram[:]
    del held
    ram.close()


def test_a_full_disk_ends_a_snapshot_not_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Quiet(Monitor):
        def __init__(self) -> None: ...

        def run(self, command: str, /, **arguments: object) -> object:
            asked.append(command)
            return []

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    memory.note(tmp_path, [])
    monkeypatch.setattr(snapshots, "_devices", lambda monitor: b"")
    monkeypatch.setattr(stream, "begin", full)
    with pytest.raises(SandboxError, match="No space left") as told:
        snapshots.save(Quiet(), tmp_path, os.getpid(), "one")
    assert not isinstance(told.value, DesktopLost)
    assert asked[-1] == "cont" and snapshots.names(tmp_path) == []


def test_memory_of_a_process_that_has_ended_is_lost() -> None:
    child = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(child, 0)
    with pytest.raises(DesktopLost, match="can't be read"), memory.changed(child):
        pass


def test_a_stream_names_its_memory_once_and_takes_only_what_qemu_saved() -> None:
    regions = [Region("ram", 0, 8 * PAGE), Region("card", 0, PAGE)]
    out = io.BytesIO()
    stream.begin(out, regions)
    before = out.tell()
    stream.pages(out, regions[0], [(2 * PAGE, b"a" * 2 * PAGE), (7 * PAGE, b"b" * PAGE)])
    pages = out.getvalue()[before:]
    assert len(pages) == 3 * (8 + PAGE) + len(b"\3ram")
    assert struct.unpack_from(">Q", pages)[0] == 2 * PAGE | 0x08
    assert struct.unpack_from(">Q", pages, 8 + 4 + PAGE)[0] == 3 * PAGE | 0x28  # same region
    stream.end(out, stream.HEAD + b"devices")
    assert b"devices" in out.getvalue() and out.getvalue().count(stream.HEAD) == 1
    with pytest.raises(ValueError, match="another form"):
        stream.end(out, b"devices")
