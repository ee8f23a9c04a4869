"""The window: a page of this host that shows an engine's picture and hands keys on to it.

A round has an address of its own that can't be guessed, so that a page can reach no other round.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from sandbox.games.lmgame.engine import Engine

PAGE = Path(__file__).with_name("window.html")
KEPT = 256
"""Rounds beyond this are dropped, the oldest first: nobody says when a round is over."""


class Window:
    """A server on a free port of the loopback interface; `base` is its address."""

    def __init__(self) -> None:
        self._rounds: OrderedDict[str, Engine] = OrderedDict()
        self._lock = threading.Lock()
        window = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                _, token, what = (*self.path.partition("?")[0].split("/"), "", "")[:3]
                engine = window.engine(token)
                if engine is None or what not in ("", "picture"):
                    self.send_error(404)
                elif what:
                    self.answer("image/png", engine.picture())
                else:
                    self.answer("text/html; charset=utf-8", PAGE.read_bytes())

            def do_POST(self) -> None:
                _, token, what = (*self.path.split("/"), "", "")[:3]
                engine = window.engine(token)
                length = min(int(self.headers.get("Content-Length") or 0), 64)
                key = self.rfile.read(length).decode("utf-8", "replace")
                if engine is None or what != "key":
                    self.send_error(404)
                    return
                engine.press(key)
                self.answer("text/plain", b"")

            def answer(self, kind: str, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.base = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def open(self, engine: Engine) -> str:
        """Return the address of a page that shows `engine`."""
        token = secrets.token_urlsafe(12)
        with self._lock:
            self._rounds[token] = engine
            while len(self._rounds) > KEPT:
                self._rounds.popitem(last=False)
        return f"{self.base}{token}/"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def engine(self, token: str) -> Engine | None:
        with self._lock:
            return self._rounds.get(token)


@cache
def window() -> Window:
    """Return this process's window server; it starts when it is first asked for."""
    return Window()
