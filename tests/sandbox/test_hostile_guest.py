"""A guest that somebody has taken over: whatever it answers, its caller goes on in time and in words."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sandbox.desktop import GuestDesktop, tools, wire
from sandbox.provider import DesktopLost, Handle

HEALTH = {"boot_id": "boot", "epoch": 1, "ready": True, "width": 64, "height": 48}
Talk = Callable[[str, Callable[[bytes], None]], None]


@contextmanager
def guest(folder: Path, talk: Talk, heads: list[str] | None = None) -> Iterator[Handle]:
    """Run a guest that `talk`s: it gets the path asked for and a way to say bytes.

    `heads` gets what it was asked, without the bodies.
    """
    over = threading.Event()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while head := self._head():
                if heads is not None:
                    heads.append(head)
                length = int(head.lower().partition("content-length:")[2].split("\r")[0] or 0)
                self.rfile.read(length)
                try:
                    talk(head.split()[1], self._say)
                except OSError:
                    return

        def _head(self) -> str:
            lines = b""
            while not lines.endswith(b"\r\n\r\n") and (line := self.rfile.readline()):
                lines += line
            return lines.decode("latin-1")

        def _say(self, data: bytes) -> None:
            if over.is_set():
                raise OSError("the test is over")
            self.wfile.write(data)

    class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
        daemon_threads = True

    path = folder / "guest.sock"
    with Server(str(path), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield Handle("fake", "desk-1", "boot", guest_socket=str(path))
        finally:
            over.set()
            server.shutdown()


def answer(fields: dict[str, Any], rest: bytes = b"", more: str = "") -> bytes:
    text = json.dumps(fields).encode()
    head = f"HTTP/1.1 200 OK\r\nX-Header-Length: {len(text)}\r\n{more}"
    return f"{head}Content-Length: {len(text + rest)}\r\n\r\n".encode() + text + rest


def in_time(work: Callable[[], object]) -> object:
    """Return what `work` gives; a caller that hangs fails the test and not the run."""
    workers = ThreadPoolExecutor(1)
    try:
        return workers.submit(work).result(30)
    finally:
        workers.shutdown(wait=False)


def test_headers_that_never_end_hold_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "_USUAL_S", 0.5)
    monkeypatch.setattr(wire, "SLACK_S", 0.5)
    drip = threading.Event()

    def talk(path: str, say: Callable[[bytes], None]) -> None:
        if path == "/v1/health":
            return say(answer(HEALTH))
        say(b"HTTP/1.1 200 OK\r\nX-More: ")
        while not drip.wait(0.02):
            say(b"a")

    with guest(tmp_path, talk) as handle:
        desktop = GuestDesktop(handle)
        try:
            with pytest.raises(DesktopLost, match="does not answer /v1/windows"):
                in_time(desktop.windows)
            assert desktop.health()["boot_id"] == "boot"  # the next question is not late for it
        finally:
            drip.set()
            desktop.close()


def test_what_a_guest_answers_is_bounded(tmp_path: Path) -> None:
    said = {"offset": 1, "exit_code": None}
    frame = {"width": 64, "height": 48, "url": "", "seq": 1, "captured_at": 10**400}
    answers = {
        "/v1/health": answer(HEALTH),
        "/v1/terminals/read": answer(said, b"x" * (tools.MAX_OUTPUT + 1)),
        "/v1/observe": answer(frame, b"png"),
    }
    with guest(tmp_path, lambda path, say: say(answers[path])) as handle:
        desktop = GuestDesktop(handle)
        try:
            with pytest.raises(DesktopLost, match="more than it keeps"):
                desktop.read_terminal("t", offset=0)
            with pytest.raises(DesktopLost, match="captured_at"):
                desktop.observe()
        finally:
            desktop.close()


def test_a_guest_leaves_no_cookies_with_its_caller(tmp_path: Path) -> None:
    """They would be kept, and sent again, for as long as the connection is."""
    number, heads = iter(range(1000)), []

    def talk(path: str, say: Callable[[bytes], None]) -> None:
        say(answer(HEALTH, more=f"Set-Cookie: c{next(number)}={'x' * 1000}\r\n"))

    with guest(tmp_path, talk, heads) as handle:
        desktop = GuestDesktop(handle)
        try:
            for _ in range(3):
                desktop.health()
        finally:
            desktop.close()
    assert len(heads) == 4 and "cookie" not in heads[-1].lower()
