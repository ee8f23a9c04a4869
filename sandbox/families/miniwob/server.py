"""The package's files over HTTP on the loopback: a flight page and its inner page must share an origin."""

from __future__ import annotations

import threading
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

from sandbox import miniwob


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@cache
def base() -> str:
    """Return the address that serves the package's html folder, for as long as this process lives."""
    handler = partial(_Quiet, directory=str(miniwob.assets() / "html"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="miniwob-files", daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
