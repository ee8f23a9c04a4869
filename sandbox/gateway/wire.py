"""What a caller and a gateway say to each other before bytes are copied: one frame each way.

A frame is a length of two bytes, big-endian, and that many bytes of JSON, at most MAX_FRAME. The
caller sends a Preamble; the gateway answers {"ok": true} or {"refused": CODE, "reason": TEXT}.
"""

from __future__ import annotations

import json
import re
import struct
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from sandbox.provider import DesktopLost, SandboxError, StaleLease

MAX_FRAME = 2048
_LENGTH = struct.Struct(">H")
_PORT = re.compile(r"port:([1-9][0-9]{0,4})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TOKEN = re.compile(r"[A-Za-z0-9_:=-]{1,1024}")


class Refusal(StrEnum):
    """Why a gateway does not let a caller in."""

    PREAMBLE = "preamble"
    TOKEN = "token"
    STALE = "stale"
    FORBIDDEN = "forbidden"
    UNKNOWN = "unknown"
    GONE = "gone"
    CLOSED = "closed"  # the computer answers, the port does not
    BUSY = "busy"


class WireError(Exception):
    """A frame is too long, no JSON, or not what was expected."""


@dataclass(frozen=True, slots=True)
class Preamble:
    """Which service of which computer a caller wants, and the token that says it may.

    `service` is "guest", "rfb" or "port:N", a TCP port on the computer's own loopback.
    """

    sandbox: str
    service: str
    epoch: int
    token: str


def port_of(service: str) -> int | None:
    """Return N of "port:N", else None."""
    found = _PORT.fullmatch(service)
    return int(found[1]) if found and int(found[1]) < 1 << 16 else None


def hello(preamble: Preamble) -> bytes:
    """Return the frame that opens a connection."""
    return frame(asdict(preamble))


def frame(record: dict[str, Any]) -> bytes:
    """Return `record` as a frame; raises WireError if it is too long for one."""
    body = json.dumps(record).encode()
    if len(body) > MAX_FRAME:
        raise WireError(f"a frame has at most {MAX_FRAME} bytes, not {len(body)}")
    return _LENGTH.pack(len(body)) + body


def missing(data: bytes) -> int:
    """Return how many bytes must still come before `data` is a whole frame; negative: too many.

    Raises WireError for a length that no frame has, before its bytes have come.
    """
    if len(data) < _LENGTH.size:
        return _LENGTH.size - len(data)
    (length,) = _LENGTH.unpack_from(data)
    if not 0 < length <= MAX_FRAME:
        raise WireError(f"a frame has 1 to {MAX_FRAME} bytes, not {length}")
    return int(_LENGTH.size + length - len(data))


def record_of(data: bytes) -> dict[str, Any]:
    """Return the JSON object of a whole frame; raises WireError."""
    try:
        record = json.loads(data[_LENGTH.size :])
    except (ValueError, RecursionError) as error:
        raise WireError(f"a frame is no JSON: {error}") from error
    if not isinstance(record, dict):
        raise WireError("a frame must hold a JSON object")
    return record


def preamble_of(data: bytes) -> Preamble:
    """Return what a caller's frame asks for; raises WireError."""
    record = record_of(data)
    if set(record) != {"sandbox", "service", "epoch", "token"}:
        raise WireError("a preamble has sandbox, service, epoch and token")
    name, service, epoch, token = (record[k] for k in ("sandbox", "service", "epoch", "token"))
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise WireError("sandbox must be a name of letters, digits, dot, dash and underscore")
    if not isinstance(service, str) or not (
        service in ("guest", "rfb") or port_of(service) is not None
    ):
        raise WireError('service must be "guest", "rfb" or "port:N"')
    if type(epoch) is not int or not 0 <= epoch < 1 << 31:
        raise WireError("epoch must be a whole number")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise WireError("token must be a signed text")
    return Preamble(name, service, epoch, token)


def raise_refusal(data: bytes, *, gateway: str) -> None:
    """Do nothing if the gateway's frame says ok; else raise StaleLease or DesktopLost."""
    try:
        record = record_of(data)
    except WireError as error:
        raise DesktopLost(f"gateway {gateway} speaks another language: {error}") from error
    if record.get("ok") is True:
        return
    code, reason = str(record.get("refused"))[:32], str(record.get("reason", ""))[:300]
    if code == Refusal.STALE:
        raise StaleLease(reason)
    if code == Refusal.CLOSED:
        raise PortClosed(reason)
    raise DesktopLost(f"gateway {gateway} refused ({code}): {reason}")


ADMITTED = b"HTTP/1.1 200 OK\r\n\r\n"
"""What a guest answers to a CONNECT, byte for byte, before it copies."""


def connect(port: int, epoch: int) -> bytes:
    """Return the request that makes a guest connect us to a port of its loopback."""
    return f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nX-Epoch: {epoch}\r\n\r\n".encode()


def raise_unconnected(answer: bytes, *, port: int) -> None:
    """Do nothing if a guest's answer to CONNECT is ADMITTED; else raise StaleLease, PortClosed."""
    if answer == ADMITTED:
        return
    status = answer[9:12].decode("ascii", "replace")
    if status == "409":
        raise StaleLease("the computer has another owner by now")
    raise PortClosed(f"nothing answers on port {port} of the computer (status {status!r})")


class PortClosed(SandboxError):
    """Nothing listens on that port of the computer."""
