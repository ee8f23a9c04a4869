"""HTTP/1.1 on a unix socket: JSON in, JSON out; a picture follows its JSON in one body."""

from __future__ import annotations

import base64
import binascii
import json
import socketserver
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, cast

from guest.computer import Computer
from guest.errors import ActionFailed, GuestError, NotFound
from guest.fencing import Result
from trajectory import FormatError, action_from_dict

MAX_BODY = 64 * 1024 * 1024
JsonObject = dict[str, Any]


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Serves one Computer; each connection has a thread of its own."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, socket_path: Path, computer: Computer, *, limits: str) -> None:
        self.computer = computer
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
        self._answer({"/v1/health": self._health})

    def do_POST(self) -> None:
        self._answer(
            {
                "/v1/epoch": self._epoch,
                "/v1/observe": self._observe,
                "/v1/perform": self._perform,
                "/v1/settle": self._settle,
                "/v1/shell": self._shell,
                "/v1/launch": self._launch,
                "/v1/files/read": self._read,
                "/v1/files/write": self._write,
                "/v1/page/evaluate": self._evaluate,
            }
        )

    # -- routes ----------------------------------------------------------------------------

    def _health(self, _: JsonObject) -> JsonObject:
        computer = self._computer
        return {
            "ready": True,
            "boot_id": computer.boot_id,
            "epoch": computer.gate.epoch,
            "width": computer.screen.width,
            "height": computer.screen.height,
            "limits": self._server.limits,
            "uptime_s": round(time.monotonic() - self._server.started, 3),
        }

    def _epoch(self, body: JsonObject) -> JsonObject:
        return {"epoch": self._computer.fence(_int(body, "epoch"))}

    def _observe(self, body: JsonObject) -> tuple[JsonObject, bytes]:
        computer = self._computer
        wanted = bool(body.get("elements", False))
        captured_at = time.time()
        # Encoding lets go of the interpreter, so the page is asked meanwhile.
        encoding = self._server.encoder.submit(computer.screen.png, computer.screen.grab())
        url, elements = computer.browser.look() if wanted else ("", None)
        png = encoding.result()
        header = {
            "width": computer.screen.width,
            "height": computer.screen.height,
            "elements": elements,
            "url": url,
            "captured_at": captured_at,
            "seq": self._server.next_observation(),
        }
        return header, png

    def _perform(self, body: JsonObject) -> JsonObject:
        try:
            action = action_from_dict(body.get("action"))
        except FormatError as error:
            raise ActionFailed(str(error)) from error
        epoch, action_id = _identity(body)
        return _result(*self._computer.perform(action, epoch=epoch, action_id=action_id))

    def _settle(self, body: JsonObject) -> JsonObject:
        quiet_ms, max_ms = _int(body, "quiet_ms"), _int(body, "max_ms")
        return {"settled": self._computer.screen.settle(quiet_ms=quiet_ms, max_ms=max_ms)}

    def _shell(self, body: JsonObject) -> JsonObject:
        epoch, action_id = _identity(body)
        return _result(
            *self._computer.shell(
                _text(body, "command"),
                epoch=epoch,
                action_id=action_id,
                timeout_ms=_int(body, "timeout_ms"),
            )
        )

    def _launch(self, body: JsonObject) -> JsonObject:
        epoch, action_id = _identity(body)
        argv = body.get("argv")
        if not isinstance(argv, list) or not all(isinstance(a, str) for a in argv):
            raise GuestError("argv must be a list of strings")
        return _result(*self._computer.launch(argv, epoch=epoch, action_id=action_id))

    def _read(self, body: JsonObject) -> tuple[JsonObject, bytes]:
        return {}, self._computer.files.read(_text(body, "path"))

    def _write(self, body: JsonObject) -> JsonObject:
        try:
            data = base64.b64decode(_text(body, "data"), validate=True)
        except binascii.Error as error:
            raise GuestError(f"data must be base64: {error}") from error
        with self._computer.gate.entered(_int(body, "epoch")):
            self._computer.files.write(_text(body, "path"), data)
        return {}

    def _evaluate(self, body: JsonObject) -> JsonObject:
        return {"value": self._computer.browser.evaluate(_text(body, "expression"))}

    # -- the wire --------------------------------------------------------------------------

    @property
    def _server(self) -> Server:
        return cast(Server, self.server)

    @property
    def _computer(self) -> Computer:
        return self._server.computer

    def _answer(self, routes: dict[str, Any]) -> None:
        try:
            body = self._body()
            route = routes.get(self.path)
            if route is None:
                raise NotFound(f"no route {self.command} {self.path}")
            self._send(200, route(body))
        except GuestError as error:
            self._send(error.status, {"error": error.code, "detail": str(error)})
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        except Exception as error:  # the boundary: the caller learns what broke, the server goes on
            self.log_error("%s %s: %r", self.command, self.path, error)
            self._send(500, {"error": "guest_error", "detail": f"{type(error).__name__}: {error}"})

    def _body(self) -> JsonObject:
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_BODY:
            self.close_connection = True
            raise GuestError(f"a request may have {MAX_BODY} bytes, not {length}")
        raw = self.rfile.read(length)
        if not raw:
            return {}
        try:
            body = json.loads(raw)
        except ValueError as error:
            raise GuestError(f"the body must be JSON: {error}") from error
        if not isinstance(body, dict):
            raise GuestError("the body must be a JSON object")
        return body

    def _send(self, status: int, answer: JsonObject | tuple[JsonObject, bytes]) -> None:
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


def _identity(body: JsonObject) -> tuple[int, str]:
    action_id = _text(body, "action_id")
    if not 0 < len(action_id) <= 128:
        raise GuestError("action_id must have 1 to 128 characters")
    return _int(body, "epoch"), action_id


def _int(body: JsonObject, name: str) -> int:
    value = body.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise GuestError(f"{name} must be a whole number, not negative")
    return value


def _text(body: JsonObject, name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise GuestError(f"{name} must be a string")
    return value


def _result(result: Result, replayed: bool) -> JsonObject:
    return {"output": result.output, "exit_code": result.exit_code, "replayed": replayed}
