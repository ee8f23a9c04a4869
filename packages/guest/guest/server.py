"""HTTP/1.1 on a unix socket: JSON in, JSON out; a picture follows its JSON in one body."""

from __future__ import annotations

import json
import socketserver
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import cast

from guest import forward
from guest.call import Answer, Call, JsonObject, Route
from guest.computer import Computer
from guest.errors import GuestError, NotFound
from guest.routes import SCREEN

MAX_BODY = 64 * 1024 * 1024


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Serves one Computer; each connection has a thread of its own."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self,
        socket_path: Path,
        computer: Computer,
        *,
        limits: str,
        routes: Mapping[str, Route] = SCREEN,
    ) -> None:
        self.computer = computer
        self.routes = routes
        self.limits = limits
        self.started = time.monotonic()
        self._observations = 0
        self._count = threading.Lock()
        self.encoder = ThreadPoolExecutor(2, thread_name_prefix="png")
        super().__init__(str(socket_path), _Handler)

    def next_observation(self) -> int:
        with self._count:
            self._observations += 1
            return self._observations


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "tandem-guest/1"

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_CONNECT(self) -> None:
        """Join the caller to a port of the computer; this connection speaks no more HTTP with us."""
        server = cast(Server, self.server)
        self.close_connection = True
        gate, epoch = server.computer.gate, self.headers.get("X-Epoch", "")
        try:
            # A guest without a loopback of its own would join strangers to the host's.
            if "POST /v1/ports" not in server.routes:
                raise NotFound("this computer has no ports")
            with forward.opened(self.path, epoch, gate) as program:
                self.wfile.write(forward.ADMITTED)
                forward.copy(self.connection, program, gate)
        except GuestError as error:
            self._send(error.status, {"error": error.code, "detail": str(error)})

    def _answer(self) -> None:
        server = cast(Server, self.server)
        try:
            body, payload = self._body()
            route = server.routes.get(f"{self.command} {self.path}")
            if route is None:
                raise NotFound(f"no route {self.command} {self.path}")
            self._send(200, route(Call(server, body, payload)))
        except GuestError as error:
            self._send(error.status, {"error": error.code, "detail": str(error)})
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        except Exception as error:  # the boundary: the caller learns what broke, the server goes on
            self.log_error("%s %s: %r", self.command, self.path, error)
            self._send(500, {"error": "guest_error", "detail": f"{type(error).__name__}: {error}"})

    def _body(self) -> tuple[JsonObject, bytes]:
        """Return the JSON of a request and the bytes after it, which X-Header-Length divides."""
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_BODY:
            self.close_connection = True
            raise GuestError(f"a request may have {MAX_BODY} bytes, not {length}")
        raw = self.rfile.read(length)
        if not raw:
            return {}, b""
        divided = int(self.headers.get("X-Header-Length") or length)
        try:
            body = json.loads(raw[:divided])
        except ValueError as error:
            raise GuestError(f"the body must be JSON: {error}") from error
        if not isinstance(body, dict):
            raise GuestError("the body must be a JSON object")
        return body, raw[divided:]

    def _send(self, status: int, answer: Answer) -> None:
        """Send JSON; with bytes, the JSON comes first and X-Header-Length says how long it is.

        Elements of a big page do not fit into an HTTP header.
        """
        header, payload = answer if isinstance(answer, tuple) else (answer, b"")
        text = json.dumps(header).encode()
        self.send_response_only(status)
        self.send_header(
            "Content-Type", "application/octet-stream" if payload else "application/json"
        )
        self.send_header("X-Header-Length", str(len(text)))
        self.send_header("Content-Length", str(len(text) + len(payload)))
        self.end_headers()
        self.wfile.write(text + payload)

    def address_string(self) -> str:
        return "unix"  # a unix peer has no address for the log

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing of requests that went well."""
