"""TensorBoard's event files, written beside a run's own metrics: `tensorboard --logdir runs`.

A file is a list of TFRecords (a length, its masked CRC-32C, the bytes, their masked CRC-32C), each an
Event of tensorflow/core/util/event.proto. Scalars need four of its fields, which is why they are
written here: the `tensorboard` package would bring gRPC and protobuf into every trainer. The tests
read the files with that package.
"""

from __future__ import annotations

import math
import os
import socket
import struct
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

FOLDER = "tensorboard"
VERSION = "brain.Event:2"
START = 1  # SessionLog.SessionStatus: what was said of this step and later ones is void


class Board:
    """Adds a trainer's lines to `RUN_DIR/tensorboard`; one file for each start of the trainer.

    A line is on disk when `add` returns, except for what the machine itself loses.
    """

    def __init__(self, run_dir: str | Path) -> None:
        self._folder = Path(run_dir) / FOLDER
        self._path: Path | None = None

    def add(self, step: int, values: Mapping[str, Any]) -> None:
        """Add the finite numbers among `values`; texts and the like are passed over."""
        now = float(values.get("time") or time.time())
        parts = []
        if self._path is None:
            self._path = self._begin()
            parts = [opening(now), restart(now, step)]
        parts.append(scalars(now, step, values))
        with self._path.open("ab") as file:
            file.write(b"".join(map(record, parts)))

    def _begin(self) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        # The reader takes files in the order of their names.
        count = len(list(self._folder.glob("events.out.tfevents.*")))
        name = f"events.out.tfevents.{int(time.time())}.{count:04}.{socket.gethostname()}.{os.getpid()}"
        return self._folder / name


def event_file(lines: Iterable[tuple[int, Mapping[str, Any]]]) -> bytes:
    """Return one whole event file of (step, values)."""
    parts = [opening(time.time())]
    parts += [scalars(float(values.get("time") or 0), step, values) for step, values in lines]
    return b"".join(map(record, parts))


# -- events, as protobuf writes them ---------------------------------------------------------------


def opening(at: float) -> bytes:
    return _double(1, at) + _bytes(3, VERSION.encode())


def restart(at: float, step: int) -> bytes:
    return _double(1, at) + _integer(2, step) + _bytes(7, _integer(1, START))


def scalars(at: float, step: int, values: Mapping[str, Any]) -> bytes:
    found = b"".join(
        _bytes(1, _bytes(1, name.encode()) + _float(2, value))
        for name, value in values.items()
        if name not in ("step", "time")
        and isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
    )
    return _double(1, at) + _integer(2, step) + _bytes(5, found)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _integer(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _float(field: int, value: float) -> bytes:
    # Beyond what 32 bits hold: as infinite, which the reader takes.
    if abs(value) > 3.4e38:
        value = math.copysign(math.inf, value)
    return _varint(field << 3 | 5) + struct.pack("<f", value)


# -- TFRecord ---------------------------------------------------------------------------------------


def record(data: bytes) -> bytes:
    """Return one TFRecord of `data`."""
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def crc32c(data: bytes) -> int:
    """Return the CRC-32C (Castagnoli, RFC 3720 appendix B.4) of `data`."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()
