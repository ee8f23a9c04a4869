"""Sends what was confirmed. It may be stopped at any byte and begun again any number of times.

The server knows how much of each file it has (`Upload-Offset`), so nothing is kept here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import httpx

from recorder.server.client import Client, ServerError
from recorder.spool import Folder
from recorder.upload.manifest import Manifest, Part, UploadError, confirmed

_TRIES = 8  # in a row that brought nothing forward
_WAIT_S, _LONGEST_WAIT_S = 0.5, 60.0
_PART_BYTES = 8 << 20
_WRONG_OFFSET, _WRONG_HASH = 409, 460
_DAMAGED = 2
# Also 409, another manifest under this id; for a part of a file it is the wrong offset.
_NO_USE = frozenset({400, 401, 403, 404, 409, 413, 422})


class Sent(NamedTuple):
    """How far an upload is, in bytes, of the files that the server did not have."""

    done: int
    total: int


class Progress:
    """Counts bytes on the server and tells them."""

    def __init__(self, total: int, tell: Callable[[Sent], None]) -> None:
        self._total, self._tell = total, tell
        self._whole = 0  # bytes of the files before this one

    def at(self, offset: int) -> None:
        self._tell(Sent(self._whole + offset, self._total))

    def whole(self, size: int) -> None:
        self._whole += size
        self.at(0)


def send(
    folder: Folder,
    client: Client,
    *,
    tell: Callable[[Sent], None] = lambda _: None,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Upload a confirmed recording; returns when the server has all of it.

    Raises UploadError where the recording is not ready or the server won't have it, and ServerError
    where the connection stays broken: the same call goes on from there.
    """
    manifest = confirmed(folder)
    again = _Patience(wait)
    answer = again.keep_on(lambda: _announce(client, manifest))
    again.went_forward()
    missing = {str(sha256) for sha256 in answer.get("missing", [])}
    size = max(1, min(int(answer.get("part_bytes", _PART_BYTES)), _PART_BYTES))
    parts = {p.sha256: p for p in manifest.parts if p.sha256 in missing}
    progress = Progress(sum(p.bytes for p in parts.values()), tell)
    for part in parts.values():
        _send_file(client, str(manifest.said["id"]), part, size, progress, again)
    again.keep_on(lambda: client.ask("POST", f"/api/recordings/{manifest.said['id']}/complete", {}))


class _Patience:
    """Tries again after what passes: a broken connection, a server that restarts, a quota."""

    def __init__(self, wait: Callable[[float], None]) -> None:
        self._wait, self._failed = wait, 0

    def keep_on(self, ask: Callable[[], Any]) -> Any:
        while True:
            try:
                return ask()
            except ServerError as error:
                self.failed(error)

    def failed(self, error: ServerError, passing: tuple[int, ...] = ()) -> None:
        """Wait before the next try; raises the error where no try would help."""
        self._failed += 1
        if error.status in _NO_USE and error.status not in passing:
            raise UploadError(str(error)) from error
        if self._failed >= _TRIES or error.retry_after_s > _LONGEST_WAIT_S:
            raise error
        pause = min(_WAIT_S * 2 ** (self._failed - 1), _LONGEST_WAIT_S)
        self._wait(max(pause, error.retry_after_s))

    def went_forward(self) -> None:
        self._failed = 0


def _announce(client: Client, manifest: Manifest) -> Mapping[str, Any]:
    body = {
        **manifest.said,
        "recording": manifest.recording,
        "confirmed_at": manifest.confirmed_at,
    }
    answer = client.ask("POST", "/api/recordings/", body)
    if not isinstance(answer, dict) or not isinstance(answer.get("missing"), list):
        raise UploadError("the server does not say what it lacks")
    return answer


def _send_file(
    client: Client, name: str, part: Part, size: int, progress: Progress, again: _Patience
) -> None:
    path = f"/api/recordings/{name}/files/{part.sha256}"
    # Of a small file it has nothing or all; in the one case in a thousand it says where to go on.
    offset = 0
    if part.bytes > size:
        offset = again.keep_on(lambda: _offset(client.send("HEAD", path)))
    damaged, touched = 0, False
    with part.path.open("rb") as data:
        # A file of no bytes is sent too: the server has heard nothing of it yet.
        while offset < part.bytes or not (touched or part.bytes):
            touched = True
            progress.at(offset)
            data.seek(offset)
            headers = {"Upload-Offset": str(offset), "Content-Type": "application/octet-stream"}
            block = data.read(min(size, part.bytes - offset))
            if not block and part.bytes:
                raise UploadError(f"{part.path} is not what was confirmed; review it again")
            try:
                answer = client.send("PATCH", path, content=block, headers=headers)
                offset, before = _offset(answer), offset
                if part.bytes and offset <= before:
                    raise ServerError(f"the server takes nothing more of {part.path.name}")
                again.went_forward()
            except ServerError as error:
                damaged += error.status == _WRONG_HASH
                if damaged > _DAMAGED:
                    raise UploadError(f"{part.path.name} arrives damaged each time") from error
                again.failed(error, passing=(_WRONG_OFFSET, _WRONG_HASH))
                offset = again.keep_on(lambda: _offset(client.send("HEAD", path)))
    progress.whole(part.bytes)


def _offset(answer: httpx.Response) -> int:
    said = answer.headers.get("Upload-Offset", "")
    if not said.isdigit():
        raise ServerError("the server does not say how much it has")
    return int(said)
