"""The review's page on loopback, for the one browser that knows the token in its address."""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

from recorder.redact import Reader, RedactionError, reader
from recorder.redact.screen.pictures import painted
from recorder.review.confirm import confirm
from recorder.review.contents import contents, peaks
from recorder.review.edits import EditError, Edits
from recorder.review.looking import Looking
from recorder.review.prepare import Reviewable
from recorder.spool import SpoolError

MAX_BODY = 64 * 1024
_CHUNK = 1 << 18
_PAGE = {
    "": ("index.html", "text/html; charset=utf-8"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
    "review.css": ("review.css", "text/css; charset=utf-8"),
    **{f"{name}.js": (f"{name}.js", "text/javascript; charset=utf-8")
       for name in ("review", "timeline", "picture", "sound")},
}  # fmt: skip
_FILE = re.compile(r"(frames/[0-9a-f]{64}\.png|audio/[\w-]{1,80}\.flac)")
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Review:
    """Serves the review of one recording until it is confirmed or closed.

    Only `address` opens it: the token is random, other hosts and origins are refused. Meanwhile the
    pictures are read by what `get_reader` returns; until that is done nothing is confirmed.
    """

    def __init__(self, ready: Reviewable, get_reader: Callable[[], Reader] = reader) -> None:
        self.ready = ready
        self.looking = Looking(ready, get_reader)
        self.edits = Edits(
            ready.folder.path / "edits.jsonl",
            steps=len(ready.lines("steps.jsonl")),
            words=len(ready.lines("words.jsonl")),
        )
        self.token = secrets.token_urlsafe(32)
        self.confirmed = threading.Event()
        self.lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.review = self
        self.host = f"127.0.0.1:{self._server.server_port}"
        self.address = f"http://{self.host}/{self.token}/"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Review:
        self._thread.start()
        self.looking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.looking.stop()
        self._server.shutdown()
        self._server.server_close()


def _may_confirm(review: Review, body: dict[str, Any]) -> None:
    """Raise EditError while something is left to look at or to listen to."""
    looking = review.looking.to_dict()
    if looking["state"] == "reading":
        raise EditError(
            "the pictures are still looked through: picture {done} of {of}".format(**looking)
        )
    shown = contents(review.ready, review.edits, review.looking)
    if shown["unheard"] and body.get("heard") is not True:
        raise EditError("say first that you have listened to what you said")
    if shown["frames"] and looking["state"] == "unread" and body.get("looked") is not True:
        raise EditError("say first that you have looked at the pictures")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    review: Review


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 30
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self._path()
        review = self.server.review
        if path is None:
            return
        if path in _PAGE:
            name, kind = _PAGE[path]
            self._send(files("recorder.review").joinpath("page", name).read_bytes(), kind)
        elif path == "contents":
            self._json(contents(review.ready, review.edits, review.looking))
        elif path == "progress":
            self._json(review.looking.to_dict())
        elif path.startswith("peaks/") and _FILE.fullmatch("audio/" + path.removeprefix("peaks/")):
            try:
                self._json(peaks(review.ready, path.removeprefix("peaks/")))
            except (OSError, RuntimeError, ImportError):
                self._json([])
        elif _FILE.fullmatch(path):
            self._shown(review.ready.path / path)
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")

    def do_POST(self) -> None:
        path, review = self._path(), self.server.review
        if path is None:
            return
        if self.headers.get("Origin") != f"http://{review.host}":
            return self._refuse(HTTPStatus.FORBIDDEN, "this request comes from another page")
        if self.headers.get_content_type() != "application/json":
            return self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "only JSON is taken")
        try:
            length = int(self.headers.get("Content-Length", ""))
            if not 0 <= length <= MAX_BODY:
                raise ValueError
            body = json.loads(self.rfile.read(length))
            if not isinstance(body, dict):
                raise ValueError
        except ValueError:
            return self._refuse(HTTPStatus.BAD_REQUEST, "the request can't be read")
        try:
            with review.lock:
                self._change(path, body)
        except EditError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        except (RedactionError, SpoolError, OSError) as error:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))

    def _change(self, path: str, body: dict[str, Any]) -> None:
        review = self.server.review
        if review.confirmed.is_set():
            raise EditError("this recording is confirmed; open its review anew to change it")
        match path:
            case "edit":
                review.edits.add(body)
            case "undo":
                review.edits.undo()
            case "confirm":
                _may_confirm(review, body)
                confirm(review.ready, review.edits, review.looking.redactions())
            case _:
                return self._refuse(HTTPStatus.NOT_FOUND, "there is no such action")
        self._json({"edits": review.edits.made})
        if path == "confirm":  # whoever waits for it may end this server, so the answer goes first
            review.confirmed.set()

    def _path(self) -> str | None:
        """Return what is asked for behind the token; refuse and return None without it."""
        review = self.server.review
        token, _, path = self.path.partition("?")[0].lstrip("/").partition("/")
        if self.headers.get("Host") != review.host:
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "this is not the host of the review")
        elif path and self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            self._refuse(HTTPStatus.FORBIDDEN, "this request comes from another page")
        elif not secrets.compare_digest(token.encode(), review.token.encode()):
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")
        else:
            return path
        return None

    def _shown(self, path: Path) -> None:
        """Send a file as it would leave: a picture without what was found on it."""
        ready = self.server.review.ready
        places = self.server.review.looking.places(path.stem) if path.suffix == ".png" else ()
        if not places:
            return self._file(path)
        screen = ready.folder.head().screen
        try:
            data = painted(path, places, (screen.width, screen.height))[1]
        except (OSError, ValueError, SyntaxError):
            return self._refuse(HTTPStatus.NOT_FOUND, "there is no such picture")
        self._send(data, "image/png")

    def _file(self, path: Path) -> None:
        """Send a picture or a sound; a browser that seeks in a sound asks for a part of it."""
        try:
            size = path.stat().st_size
            with path.open("rb") as opened:
                asked = re.fullmatch(r"bytes=(\d{1,12})-(\d{0,12})", self.headers.get("Range", ""))
                start = int(asked[1]) if asked else 0
                end = min(size, int(asked[2]) + 1) if asked and asked[2] else size
                if start >= end:
                    return self._refuse(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, "no such part")
                self.send_response(HTTPStatus.PARTIAL_CONTENT if asked else HTTPStatus.OK)
                if asked:
                    self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
                self.send_header("Accept-Ranges", "bytes")
                kind = "image/png" if path.suffix == ".png" else "audio/flac"
                self._head(kind, end - start)
                opened.seek(start)
                while start < end and (data := opened.read(min(_CHUNK, end - start))):
                    self.wfile.write(data)
                    start += len(data)
        except FileNotFoundError:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such file")
        except ConnectionError:
            self.close_connection = True

    def _json(self, value: object) -> None:
        self._send(json.dumps(value, ensure_ascii=False).encode(), "application/json")

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self.close_connection = True
        body = json.dumps({"error": status.phrase, "message": message}).encode()
        self.send_response(status)
        self._head("application/json", len(body))
        self.wfile.write(body)

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(HTTPStatus.OK)
        self._head(kind, len(body))
        self.wfile.write(body)

    def _head(self, kind: str, length: int) -> None:
        for name, value in {
            **_HEADERS,
            "Content-Type": kind,
            "Content-Length": str(length),
        }.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing: the token stands in every address."""
