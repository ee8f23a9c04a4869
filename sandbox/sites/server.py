"""Serving instances of our apps on the loopback, each episode one with a database of its own."""

from __future__ import annotations

import secrets
import sqlite3
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from sandbox.sites.app import App, NotFound, Redirect, state

MAX_BODY = 64 * 1024
MAX_INSTANCES = 512
"""Beyond this the oldest is closed: an episode that was lost never closes its own."""


@dataclass(slots=True)
class Instance:
    """One app with its rows. `key` is in its address: who does not know it can't reach it.

    `begun` is what the rows were when it was opened.
    """

    app: App
    database: sqlite3.Connection
    key: str
    base: str
    begun: dict[str, list[dict[str, Any]]]
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"{self.base}{self.key}/"

    def state(self) -> dict[str, list[dict[str, Any]]]:
        with self.lock:
            return state(self.database)


class Server:
    """One port for all instances of a process; threads answer at once, an instance one at a time."""

    def __init__(self) -> None:
        self._instances: dict[str, Instance] = {}
        self._lock = threading.Lock()
        self._http = _Quiet(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, name="sites", daemon=True).start()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/"

    def open(self, app: App, seed: int) -> Instance:
        """Return a fresh instance of `app` with the rows of `seed`."""
        database = app.create(seed)
        made = Instance(app, database, secrets.token_hex(8), self.base, state(database))
        with self._lock:
            self._instances[made.key] = made
            while len(self._instances) > MAX_INSTANCES:
                self._drop(next(iter(self._instances)))
        return made

    def find(self, key: str) -> Instance | None:
        return self._instances.get(key)

    def close(self, instance: Instance) -> None:
        """Forget an instance and its rows; fine if it is gone."""
        with self._lock:
            self._drop(instance.key)

    def _drop(self, key: str) -> None:
        gone = self._instances.pop(key, None)
        if gone is not None:
            with gone.lock:
                gone.database.close()

    def answer(self, method: str, path: str, form: Mapping[str, str]) -> tuple[int, str, str]:
        """Return (status, location, HTML) of a request."""
        _, key, rest = [*path.split("/", 2), "", ""][:3]
        instance = self.find(key)
        if instance is None:
            return 404, "", "<h1>There is no such site</h1>"
        try:
            with instance.lock:
                page = instance.app.answer(instance.database, method, f"/{rest}", form)
        except Redirect as there:
            return 303, f"/{key}{there.args[0]}", ""
        except (NotFound, sqlite3.ProgrammingError):
            return 404, "", instance.app.frame("<h1>There is no such page</h1>")
        return 200, "", page.replace('<base href="./">', f'<base href="/{key}/">')


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that went away in mid-answer; the rest as always."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            self._say(*server.answer("GET", parts.path, dict(parse_qsl(parts.query))))

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if not 0 <= length <= MAX_BODY:
                self._say(413, "", "too much")
                return
            body = self.rfile.read(length).decode(errors="replace")
            form = dict(parse_qsl(body, keep_blank_values=True))
            self._say(*server.answer("POST", urlsplit(self.path).path, form))

        def _say(self, status: int, location: str, page: str) -> None:
            data = page.encode()
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@cache
def server() -> Server:
    """Return this process's server, started when it is first asked for."""
    return Server()
