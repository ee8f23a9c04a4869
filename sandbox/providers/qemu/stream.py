"""The state of a machine as QEMU reads it when it is started from one: its migration stream.

QEMU writes the devices; the pages of memory are ours to add, only those that differ from what the
machine will be started over. https://www.qemu.org/docs/master/devel/migration/main.html and
migration/ram.c (version 4 of the section "ram").
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import BinaryIO

from sandbox.providers.qemu.memory import PAGE, Region

HEAD = struct.pack(">II", 0x5145564D, 3)  # "QEVM" and the version
_START, _END, _DESCRIPTION, _FOOTER = 0x01, 0x03, 0x06, 0x7E
_SECTION = 0xFFFF  # QEMU counts its own from 0
_MEM_SIZE, _PAGE_FLAG, _EOS, _CONTINUE = 0x04, 0x08, 0x10, 0x20
_RAM_VERSION = 4


def begin(out: BinaryIO, regions: list[Region]) -> None:
    """Write the beginning: which memory there is."""
    total = sum(region.size for region in regions)
    out.write(HEAD)
    out.write(struct.pack(">BI", _START, _SECTION) + _named("ram"))
    out.write(struct.pack(">II", 0, _RAM_VERSION))
    out.write(struct.pack(">Q", total | _MEM_SIZE))
    for region in regions:
        out.write(_named(region.name) + struct.pack(">Q", region.size))
    out.write(struct.pack(">Q", _EOS) + _footer())
    out.write(struct.pack(">BI", _END, _SECTION))


def pages(out: BinaryIO, region: Region, runs: Iterable[tuple[int, bytes]]) -> None:
    """Write (offset, bytes) of whole pages of one region."""
    named, flag = _named(region.name), _PAGE_FLAG
    for offset, data in runs:
        for at in range(0, len(data), PAGE):
            out.write(struct.pack(">Q", offset + at | flag) + named + data[at : at + PAGE])
            named, flag = b"", _PAGE_FLAG | _CONTINUE


def end(out: BinaryIO, devices: bytes) -> None:
    """Write the rest: `devices` as QEMU saved them, which begin with HEAD; raises ValueError."""
    if not devices.startswith(HEAD):
        raise ValueError("what QEMU saved of its devices is of another form")
    out.write(struct.pack(">Q", _EOS) + _footer())
    out.write(devices[len(HEAD) :])
    out.write(struct.pack(">BI", _DESCRIPTION, 2) + b"{}")


def _named(name: str) -> bytes:
    return bytes((len(name),)) + name.encode()


def _footer() -> bytes:
    return struct.pack(">BI", _FOOTER, _SECTION)
