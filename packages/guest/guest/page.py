"""The page in front of a Chromium, by the DevTools protocol: evaluate, list elements, navigate."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trajectory import Element

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

ELEMENTS_JS = Path(__file__).with_name("elements.js").read_text(encoding="utf-8")

MAX_ELEMENTS = 200
"""Beyond this a page is cut: nobody reads further, and a prompt holds far less."""


class PageError(Exception):
    """The page did not do what was asked; the message says what."""


class NoPage(PageError):
    """No browser answers at the port, or it has no page open."""


class ScriptError(PageError):
    """JavaScript threw; the message is its own."""


@dataclass(frozen=True, slots=True)
class View:
    """What can be seen of the page: `elements` with boxes in pixels of the screen.

    `origin` is the viewport's top left on the screen, `ratio` the pixels per CSS pixel.
    """

    url: str
    origin: tuple[float, float]
    ratio: float
    elements: tuple[Element, ...]


class Page:
    """A client of whatever page is in front; it follows the browser when another comes forward.

    `timeout` (seconds) bounds every call. `screen_width` in pixels lets boxes stay right under page
    zoom; without it the display is taken to be at zoom 1. Not safe for several threads at once.
    """

    def __init__(
        self,
        port: int = 9222,
        *,
        host: str = "127.0.0.1",
        timeout: float = 3.0,
        screen_width: int = 0,
    ) -> None:
        self.host, self.port, self.timeout, self.screen_width = host, port, timeout, screen_width
        self._socket: ClientConnection | None = None
        self._open = ExitStack()  # holds the connection: websockets wants a context for it
        self._target = ""
        self._calls = 0

    def evaluate(self, expression: str) -> object:
        """Return the JSON value of a JavaScript expression; a promise is awaited.

        Raises ScriptError if it throws, NoPage, PageError (a dialog of the page blocks it too).
        """
        answer = self.call(
            "Runtime.evaluate",
            {"expression": expression, "returnByValue": True, "awaitPromise": True},
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            thrown = details.get("exception", {}).get("description") or details.get("text", "")
            raise ScriptError(str(thrown).splitlines()[0] if thrown else "the script failed")
        return answer.get("result", {}).get("value")

    def view(self) -> View:
        """Return what can be seen of the page in front, elements in reading order."""
        options = json.dumps({"screenWidth": self.screen_width})
        found = self.evaluate(f"{ELEMENTS_JS}({options})")
        if not isinstance(found, dict):
            raise PageError("the page gave no list of elements")
        elements = tuple(_element(record) for record in found["elements"][:MAX_ELEMENTS])
        x, y = found["origin"]
        return View(str(found["url"]), (float(x), float(y)), float(found["ratio"]), elements)

    def elements(self) -> tuple[Element, ...]:
        """Return the visible elements of the page in front; () where there is no page."""
        try:
            return self.view().elements
        except NoPage:
            return ()

    @property
    def url(self) -> str:
        """Return the address of the page in front; "" where there is no page."""
        try:
            return str(self._front()["url"])
        except NoPage:
            return ""

    def navigate(self, url: str) -> None:
        """Open `url` in the page in front and wait until it has loaded, at most `timeout`.

        A page that still loads then is left loading; an address that can't be opened raises PageError.
        """
        answer = self.call("Page.navigate", {"url": url})
        if answer.get("errorText"):
            raise PageError(f"{url}: {answer['errorText']}")
        deadline = time.monotonic() + self.timeout
        while time.monotonic() < deadline:
            state = self.evaluate("[document.readyState, location.href]")
            if isinstance(state, list) and state[0] == "complete" and state[1] != "about:blank":
                return
            if url.startswith("about:") and isinstance(state, list) and state[0] == "complete":
                return
            time.sleep(0.02)

    def call(self, method: str, params: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Send one DevTools command to the page in front and return its result.

        Once more on a new connection if the page went away in between.
        """
        # Read with the first page: it takes a fifth of the time that the guest needs to start.
        from websockets.exceptions import WebSocketException

        for attempt in (1, 2):
            socket = self._connected()
            try:
                return self._roundtrip(socket, method, params or {})
            except (WebSocketException, OSError) as error:
                self.close()
                if attempt == 2:
                    raise PageError(f"the page went away during {method}: {error}") from error
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Let go of the connection; the next call opens a new one."""
        self._socket, self._target = None, ""
        self._open.close()

    def _roundtrip(
        self, socket: ClientConnection, method: str, params: Mapping[str, object]
    ) -> dict[str, Any]:
        self._calls += 1
        socket.send(json.dumps({"id": self._calls, "method": method, "params": params}))
        deadline = time.monotonic() + self.timeout
        while True:
            left = deadline - time.monotonic()
            try:
                if left <= 0:
                    raise TimeoutError
                message = json.loads(socket.recv(timeout=left))
            except TimeoutError:
                # The answer may still come: it must not be taken for that of the next call.
                self.close()
                raise PageError(
                    f"the page did not answer {method} within {self.timeout:g} s; "
                    "a dialog of the page may be waiting"
                ) from None
            if message.get("id") != self._calls:
                continue
            if "error" in message:
                raise PageError(f"{method}: {message['error'].get('message', 'failed')}")
            result: dict[str, Any] = message["result"]
            return result

    def _connected(self) -> ClientConnection:
        from websockets.exceptions import WebSocketException
        from websockets.sync.client import connect

        front = self._front()
        if self._socket is not None and front["id"] == self._target:
            return self._socket
        self.close()
        try:
            self._socket = self._open.enter_context(
                connect(
                    str(front["webSocketDebuggerUrl"]),
                    max_size=None,
                    open_timeout=self.timeout,
                    close_timeout=0.2,
                    compression=None,
                    proxy=None,
                    # An Origin header makes Chromium refuse the socket.
                    origin=None,
                )
            )
        except (WebSocketException, OSError, TimeoutError) as error:
            raise PageError(f"no connection to the page: {error}") from error
        self._target = str(front["id"])
        return self._socket

    def _front(self) -> dict[str, Any]:
        """Return the target that was used last: Chromium lists them in that order."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)
        try:
            connection.request("GET", "/json/list")
            targets = json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NoPage(f"no browser answers at {self.host}:{self.port}: {error}") from error
        finally:
            connection.close()
        for target in targets:
            inner = str(target.get("url", "")).startswith(("devtools:", "chrome-extension:"))
            if target.get("type") == "page" and not inner:
                return dict(target)
        raise NoPage("the browser has no page open")


def _element(record: Mapping[str, Any]) -> Element:
    left, top, width, height = (int(n) for n in record["box"])
    return Element(
        role=str(record["role"]),
        name=str(record["name"]),
        box=(left, top, width, height),
        value=str(record["value"]),
        focused=bool(record["focused"]),
    )
