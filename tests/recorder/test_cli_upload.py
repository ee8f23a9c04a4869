"""Uploads over a line that breaks anywhere: in the end the server has every byte once."""

from __future__ import annotations

import hashlib
import json
import random
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from recorder.server.client import Client, ServerError
from recorder.spool import Folder
from recorder.upload import UploadError, send

RECORDING = "a" * 32


class Store(ThreadingHTTPServer):
    """A server that keeps uploads as the interface says, and cuts connections as `chance` decides."""

    daemon_threads = True

    def __init__(self, seed: int, cuts: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.chance, self.cuts = random.Random(seed), cuts
        self.manifests: dict[str, dict[str, object]] = {}
        self.files: dict[str, bytearray] = {}
        self.sizes: dict[str, int] = {}
        self.complete: list[str] = []
        self.damaged = 0  # files whose first arrival is damaged
        self.refusal: tuple[int, dict[str, object]] | None = None
        self.takes: int | None = None  # what it answers to a part of a file that it does not keep
        self.received = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def done(self, sha256: str) -> bytes:
        data = bytes(self.files[sha256])
        assert hashlib.sha256(data).hexdigest() == sha256
        return data


class Handler(BaseHTTPRequestHandler):
    server: Store

    def log_message(self, *_: object) -> None: ...

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.refusal:
            return self._answer(*self.server.refusal)
        if self.path == "/api/recordings/":
            known = self.server.manifests.setdefault(body["id"], body)
            if known["files"] != body["files"]:
                return self._answer(409, {"error": "other", "message": "another one has this id"})
            self.server.sizes |= {f["sha256"]: f["bytes"] for f in body["files"]}
            missing = [s for s, n in self.server.sizes.items() if not self._whole(s, n)]
            return self._answer(201, {"missing": missing, "part_bytes": 700})
        self.server.complete.append(self.path.split("/")[-2])
        self._answer(202, {})

    def do_HEAD(self) -> None:
        self._offset(200)

    def do_PATCH(self) -> None:
        sha256, length = self.path.rsplit("/", 1)[1], int(self.headers["Content-Length"])
        kept = self.server.files.setdefault(sha256, bytearray())
        if int(self.headers["Upload-Offset"]) != len(kept):
            self.rfile.read(length)
            return self._offset(409)
        if self.server.takes is not None:
            self.rfile.read(length)
            return self._offset(self.server.takes)
        cut = self.server.cuts > 0 and self.server.chance.random() < 0.5
        data = self.rfile.read(self.server.chance.randint(0, length) if cut else length)
        kept += data
        self.server.received += len(data)
        if cut:
            self.server.cuts -= 1
            if self.server.chance.random() < 0.5:
                return self.connection.close()  # in the middle of a part
            self.rfile.read(length - len(data))
            return self.connection.close()  # and the answer is lost
        if len(kept) == self.server.sizes[sha256]:
            if self.server.damaged:
                self.server.damaged -= 1
                kept[:] = b"\0" + kept[1:]
            if hashlib.sha256(kept).hexdigest() != sha256:
                kept.clear()
                return self._offset(460)
        self._offset(204)

    def _whole(self, sha256: str, size: int) -> bool:
        return sha256 in self.server.files and len(self.server.files[sha256]) == size

    def _offset(self, status: int) -> None:
        kept = self.server.files.get(self.path.rsplit("/", 1)[1], b"")
        self.send_response(status)
        self.send_header("Upload-Offset", str(len(kept)))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        if status == 429:
            self.send_header("Retry-After", "3")
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture(params=range(3))
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    yield from running(Store(request.param, cuts=12))


@pytest.fixture
def plain() -> Iterator[Store]:
    yield from running(Store(0, cuts=0))


def running(server: Store) -> Iterator[Store]:
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def confirmed(tmp_path: Path) -> Folder:
    """A recording that was reviewed, with files of many sizes."""
    folder = Folder(tmp_path / RECORDING)
    (folder.upload / "frames").mkdir(parents=True)
    chance = random.Random(4)
    contents = {f"frames/{n}.png": chance.randbytes(n * 531) for n in range(1, 9)}
    contents["redactions.jsonl"] = b""
    contents["recording.json"] = json.dumps({"review": {"confirmed_at": 5.0, "edits": 0}}).encode()
    files = []
    for name, data in contents.items():
        (folder.upload / name).write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        files.append({"path": name, "sha256": digest, "bytes": len(data)})
    manifest = {"id": RECORDING, "format": "tandem-recording/1", "files": files}
    (folder.upload / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_every_byte_arrives_once_however_often_the_line_breaks(
    store: Store, confirmed: Folder
) -> None:
    waits: list[float] = []
    told: list[int] = []
    send(
        confirmed, Client(store.address, "t"), wait=waits.append,
        tell=lambda sent: told.append(sent.done),
    )  # fmt: skip
    manifest = json.loads((confirmed.upload / "manifest.json").read_text())
    for file in manifest["files"]:
        assert store.done(file["sha256"]) == (confirmed.upload / file["path"]).read_bytes()
    assert store.complete == [RECORDING]
    assert store.received == sum(file["bytes"] for file in manifest["files"])
    assert store.cuts < 12 and waits
    assert told[-1] == sum(file["bytes"] for file in manifest["files"])


def test_a_second_upload_sends_nothing(plain: Store, confirmed: Folder) -> None:
    client = Client(plain.address, "t")
    send(confirmed, client)
    received = plain.received
    send(confirmed, client)
    assert plain.received == received
    assert plain.complete == [RECORDING] * 2


def test_what_arrives_damaged_is_sent_again(plain: Store, confirmed: Folder) -> None:
    plain.damaged = 1
    send(confirmed, Client(plain.address, "t"), wait=lambda _: None)
    assert plain.complete == [RECORDING]
    plain.files.clear()
    plain.damaged = 99
    with pytest.raises(UploadError, match="arrives damaged each time"):
        send(confirmed, Client(plain.address, "t"), wait=lambda _: None)


def test_what_was_changed_after_the_review_is_not_sent(plain: Store, confirmed: Folder) -> None:
    (confirmed.upload / "frames" / "3.png").write_bytes(b"x" * 3 * 531)
    with pytest.raises(UploadError, match="is not what was confirmed"):
        send(confirmed, Client(plain.address, "t"))
    assert plain.manifests == {}


def test_what_nobody_confirmed_is_not_sent(plain: Store, confirmed: Folder) -> None:
    (confirmed.upload / "recording.json").write_text("{}")
    with pytest.raises(UploadError, match="not confirmed yet"):
        send(confirmed, Client(plain.address, "t"))
    (confirmed.upload / "manifest.json").unlink()
    with pytest.raises(UploadError, match="not reviewed yet"):
        send(confirmed, Client(plain.address, "t"))
    assert plain.manifests == {}


def test_a_manifest_reaches_no_file_outside(plain: Store, confirmed: Folder) -> None:
    path = confirmed.upload / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["files"][0]["path"] = "../../secret"
    path.write_text(json.dumps(manifest))
    with pytest.raises(UploadError, match="no file of it"):
        send(confirmed, Client(plain.address, "t"))


@pytest.mark.parametrize(
    ("status", "message"), [(413, "frames/3.png is larger than 20 MB"), (409, "another one")]
)
def test_a_refusal_is_told_as_the_server_said_it(
    plain: Store, confirmed: Folder, status: int, message: str
) -> None:
    plain.refusal = (status, {"error": "no", "message": message})
    with pytest.raises(UploadError, match=message):
        send(confirmed, Client(plain.address, "t"))


def test_a_quota_is_waited_for_and_then_told(plain: Store, confirmed: Folder) -> None:
    plain.refusal = (429, {"error": "quota", "message": "3 GB today; go on tomorrow"})
    waits: list[float] = []
    with pytest.raises(ServerError, match="go on tomorrow"):
        send(confirmed, Client(plain.address, "t"), wait=waits.append)
    assert waits and min(waits) >= 3.0


@pytest.mark.parametrize("answer", [507, 204])
def test_a_server_that_takes_nothing_more_is_given_up(
    plain: Store, confirmed: Folder, answer: int
) -> None:
    """It says how much it has each time it is asked, and that is no step forward."""
    plain.takes = answer
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        assert len(waits) < 50, "it goes on for ever"

    with pytest.raises(ServerError):
        send(confirmed, Client(plain.address, "t"), wait=wait)
    assert waits == sorted(waits) and waits[-1] > 10 * waits[0]
    plain.takes = None
    send(confirmed, Client(plain.address, "t"))
    assert plain.complete == [RECORDING]


def test_a_file_that_shrinks_while_it_is_sent_is_told(plain: Store, confirmed: Folder) -> None:
    part = confirmed.upload / "frames" / "8.png"
    with pytest.raises(UploadError, match="is not what was confirmed"):
        send(confirmed, Client(plain.address, "t"), tell=lambda _: part.write_bytes(b""))


def test_a_token_is_sent_over_no_open_line() -> None:
    with pytest.raises(ServerError, match="not encrypted"):
        Client("http://tandem.example.org", "t")


@pytest.mark.parametrize(
    "address", ["https://[x", "https://host:port", "https://h:99999", "ftp://x", ""]
)
def test_what_is_no_address_is_said(address: str) -> None:
    with pytest.raises(ServerError, match="is no address of a server"):
        Client(address)
