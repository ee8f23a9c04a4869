"""A raw DevTools connection over a pair of pipes: NUL-separated JSON, no TCP port to be reached.

Commands can be sent ahead and awaited later; answers and events arrive on one reader thread.
"""

from __future__ import annotations

import json
import os
import select
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

Event = Callable[[str, dict[str, Any]], None]
"""Called on the reader thread with (method, params); it must not wait for an answer."""


class CdpError(Exception):
    """A DevTools command did not give a result; subclasses say why."""


_TOLD_S = 5.0
_UNREAD_S = 10.0


class Refused(CdpError):
    """The browser answered with an error; the message is its own."""


class NoAnswer(CdpError):
    """The deadline passed without an answer."""


class Gone(CdpError):
    """The browser, or the target that the command went to, is not there any more."""


class Reply:
    """The answer to one command, awaited by one thread."""

    __slots__ = ("_arrived", "_connection", "_error", "_result", "id", "method", "session")

    def __init__(self, connection: Connection, number: int, method: str, session: str) -> None:
        self.id, self.method, self.session = number, method, session
        self._connection = connection
        self._arrived = threading.Lock()  # a lock is the cheapest thing to wait on
        self._arrived.acquire()
        self._result: dict[str, Any] = {}
        self._error: CdpError | None = None

    def arrived(self, deadline: float) -> bool:
        """Wait for the answer until `deadline` (of time.monotonic()); whether it is there."""
        if self._arrived.acquire(timeout=max(0.0, deadline - time.monotonic())):
            self._arrived.release()
            return True
        return False

    def result(self, deadline: float) -> dict[str, Any]:
        """Return the result; `deadline` is of time.monotonic().

        Raises Refused, NoAnswer, Gone.
        """
        if not self._arrived.acquire(timeout=max(0.0, deadline - time.monotonic())):
            self._connection.forget(self)
            raise NoAnswer(f"no answer to {self.method} in time")
        self._arrived.release()
        if self._error is not None:
            raise self._error
        return self._result

    def resolve(self, result: dict[str, Any], error: CdpError | None = None) -> None:
        """Give the waiter its answer."""
        self._result, self._error = result, error
        self._arrived.release()


class Connection:
    """Speaks to one browser; safe to share between threads.

    `read_fd` and `write_fd` are owned from now on. `cause` is asked once, when the pipe breaks, for
    the reason in words; `lost` is called after every waiter has been failed.
    """

    def __init__(
        self,
        read_fd: int,
        write_fd: int,
        *,
        cause: Callable[[], str],
        lost: Callable[[str], None],
    ) -> None:
        self._read_fd, self._write_fd = read_fd, write_fd
        self._cause, self._lost = cause, lost
        self._write_lock = threading.Lock()
        self._lock = threading.Lock()
        self._waiting: dict[int, Reply] = {}
        self._sessions: dict[str, Event] = {}
        self._number = 0
        self._gone = ""
        self._told = threading.Event()
        os.set_blocking(write_fd, False)
        self._reader = threading.Thread(target=self._read, name="cdp-reader", daemon=True)
        self._reader.start()

    @property
    def gone(self) -> str:
        """Why the browser is not there any more; "" while it is."""
        return self._gone

    def subscribe(self, session: str, event: Event) -> None:
        """Send the events of `session` ("" is the browser itself) to `event`."""
        with self._lock:
            self._sessions[session] = event

    def unsubscribe(self, session: str, reason: str) -> None:
        """Forget `session`; whoever waits for an answer of it is told that it is gone."""
        with self._lock:
            self._sessions.pop(session, None)
            orphans = [reply for reply in self._waiting.values() if reply.session == session]
            for reply in orphans:
                del self._waiting[reply.id]
        for reply in orphans:
            reply.resolve({}, Gone(reason))

    def send(
        self, method: str, params: Mapping[str, object] | None = None, session: str = ""
    ) -> Reply:
        """Send a command now; the reply is awaited later. Raises Gone."""
        with self._lock:
            if self._gone:
                raise Gone(self._gone)
            self._number += 1
            reply = Reply(self, self._number, method, session)
            self._waiting[reply.id] = reply
        message: dict[str, object] = {"id": reply.id, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        self._write(json.dumps(message).encode() + b"\0")
        return reply

    def call(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        session: str = "",
        *,
        timeout: float = 10.0,
    ) -> dict[str, Any]:
        """Send a command and return its result. Raises Refused, NoAnswer, Gone."""
        return self.send(method, params, session).result(time.monotonic() + timeout)

    def forget(self, reply: Reply) -> None:
        """Expect no answer to `reply` any more."""
        with self._lock:
            self._waiting.pop(reply.id, None)

    def close(self) -> None:
        """Close the writing side: the browser ends by itself, and the reader with it."""
        with self._write_lock:
            if self._write_fd >= 0:
                os.close(self._write_fd)
                self._write_fd = -1

    # -- the pipes ---------------------------------------------------------------------------

    def _write(self, data: bytes) -> None:
        with self._write_lock:
            view = memoryview(data)
            while view:
                if self._write_fd < 0:
                    raise Gone(self._gone or "the browser was closed")
                try:
                    view = view[os.write(self._write_fd, view) :]
                except BlockingIOError:
                    # A browser that reads nothing for this long is as good as gone. It has half
                    # of this command: another one behind it would be read as its rest.
                    if not select.select([], [self._write_fd], [], _UNREAD_S)[1]:
                        os.close(self._write_fd)
                        self._write_fd = -1
                        raise Gone("the browser has stopped reading its commands") from None
                except OSError as error:
                    # The reader learns at the same moment why; it has the words.
                    self._told.wait(_TOLD_S)
                    raise Gone(self._gone or f"the browser's pipe broke: {error}") from error

    def _read(self) -> None:
        parts: list[bytes] = []
        while True:
            try:
                chunk = os.read(self._read_fd, 1 << 20)
            except OSError:
                chunk = b""
            if not chunk:
                break
            while (end := chunk.find(b"\0")) >= 0:
                parts.append(chunk[:end])
                self._dispatch(json.loads(b"".join(parts)))
                parts.clear()
                chunk = chunk[end + 1 :]
            if chunk:
                parts.append(chunk)
        self._break(self._cause())

    def _dispatch(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        if number is None:
            event = self._sessions.get(message.get("sessionId", ""))
            if event is not None:
                event(message["method"], message.get("params", {}))
            return
        with self._lock:
            reply = self._waiting.pop(number, None)
        if reply is None:
            return
        error = message.get("error")
        if error is None:
            reply.resolve(message["result"])
        else:
            reply.resolve({}, Refused(f"{reply.method}: {error.get('message', 'failed')}"))

    def _break(self, reason: str) -> None:
        with self._lock:
            self._gone = reason
            self._told.set()
            waiting = list(self._waiting.values())
            self._waiting.clear()
        for reply in waiting:
            reply.resolve({}, Gone(reason))
        self._lost(reason)
        os.close(self._read_fd)
