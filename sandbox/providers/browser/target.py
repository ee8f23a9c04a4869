"""One page of a browser as the protocol sees it: a target in a browser context of its own.

Frames are asked for: nothing is painted, and no animation frame runs, between two frames.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sandbox.provider import ActionFailed, DesktopLost
from sandbox.providers.browser.cdp import CdpError, Connection, Gone, NoAnswer, Refused, Reply
from sandbox.providers.browser.spec import PageSpec

ANSWER_S = 20.0
"""A page that does not answer for this long is given up."""
BLANK_S = 5.0
"""So is one whose frames come without a picture: it is rare, and such a page never has one again."""
LOAD_S = 15.0
_START_S = 0.3
_DISPOSE_S = 2.0
_FRAME_MS = 1000 / 60
_PATIENCE_S = 0.02  # then a frame is given: some input is only delivered with one
_MAX_NOTES = 50


class Target:
    """A page and all that hangs on it. `frames` is the browser's: its pages take turns with frames.

    (Two frames at once crash Chromium's compositor: "overlapping IssueExternalBeginFrame".)
    `scripts` run first in every document and worker.
    """

    def __init__(
        self,
        connection: Connection,
        spec: PageSpec,
        frames: threading.Lock,
        *,
        scripts: Sequence[str] = (),
        stuck: Callable[[str], None],
    ) -> None:
        self.spec = spec
        self.id = self.session = self.lost = ""
        self.notes: list[str] = []
        self.damaged = True  # something has changed on the page since this was last set to False
        self._connection, self._frames, self._scripts, self._stuck = (
            connection, frames, tuple(scripts), stuck,
        )  # fmt: skip
        self._changed = threading.Condition()
        self._loads: set[str] = set()
        self._loading = False
        self._asked = self._followed = (
            0  # navigations that the page has begun, and those waited for
        )
        deadline = time.monotonic() + ANSWER_S
        made = connection.send("Target.createBrowserContext", {"disposeOnDetach": True})
        self.context = str(made.result(deadline)["browserContextId"])
        try:
            self._create(deadline)
        except BaseException:
            self.dispose()
            raise

    # -- asking ------------------------------------------------------------------------------

    def send(self, method: str, params: Mapping[str, object] | None = None) -> Reply:
        """Send a command to the page. Raises DesktopLost."""
        if self.lost:
            raise DesktopLost(self.lost)
        try:
            return self._connection.send(method, params, self.session)
        except Gone as error:
            raise DesktopLost(self.lost or str(error)) from error

    def call(self, method: str, params: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Send a command and return its result. Raises ActionFailed, DesktopLost."""
        return self.wait(self.send(method, params))

    def wait(self, reply: Reply, *, patience_s: float = _PATIENCE_S) -> dict[str, Any]:
        """Return the result of `reply`, giving a frame each `patience_s` while it does not come.

        Raises ActionFailed, DesktopLost.
        """
        deadline = time.monotonic() + ANSWER_S
        while not reply.arrived(min(deadline, time.monotonic() + patience_s)):
            if time.monotonic() > deadline:
                raise self.give_up(reply.method)
            self.frame(picture=False)
        return self._result(reply, deadline)

    def frame(self, *, picture: bool, jpeg: int = 0) -> bytes:
        """Run one frame and return its picture as PNG; b"" if none was asked for.

        With `jpeg`, a quality from 1 to 100, the picture is a JPEG.

        Raises DesktopLost.
        """
        deadline = time.monotonic() + BLANK_S
        last = deadline + LOAD_S
        while True:
            answer = self._frame(picture, jpeg)
            data = answer.get("screenshotData")
            if data or not picture:
                return base64.b64decode(data or "")
            if self._loading:
                deadline = min(last, time.monotonic() + BLANK_S)
            if time.monotonic() > deadline:
                raise self.give_up("a picture", BLANK_S)
            time.sleep(0.002)  # in the middle of a navigation there is nothing to take

    def evaluate(self, expression: str) -> object:
        """Return the JSON value of a JavaScript expression; a promise is awaited.

        Raises ActionFailed if it throws, DesktopLost.
        """
        return self.value(self.send_script(expression))

    def send_script(self, expression: str) -> Reply:
        """Send a JavaScript expression; `value` gives its result later."""
        return self.send(
            "Runtime.evaluate",
            {"expression": expression, "returnByValue": True, "awaitPromise": True},
        )

    def value(self, reply: Reply) -> object:
        """Return the JSON value that a script has sent back. Raises ActionFailed, DesktopLost."""
        answer = self.wait(reply)
        if (details := answer.get("exceptionDetails")) is not None:
            thrown = details.get("exception", {}).get("description") or details.get("text", "")
            raise ActionFailed(str(thrown).splitlines()[0] if thrown else "the script failed")
        value: object = answer["result"].get("value")
        return value

    # -- going places ------------------------------------------------------------------------

    def navigate(self, url: str) -> None:
        """Open `url` and wait until it has loaded. Raises ActionFailed, DesktopLost."""
        if not self.spec.allows(url):
            raise ActionFailed(f"this page may not open {url}: allowed are {self.spec.origins}")
        answer = self.call("Page.navigate", {"url": url})
        if answer.get("errorText"):
            raise ActionFailed(f"{url}: {answer['errorText']}")
        if loader := answer.get("loaderId"):
            self._until(lambda: loader in self._loads, f"{url} did not load")
            self.loaded()
        self._followed = self._asked

    def back(self) -> None:
        """Go one page back in history. Raises ActionFailed if this is the first, DesktopLost."""
        history = self.call("Page.getNavigationHistory")
        index = int(history["currentIndex"])
        if index == 0:
            raise ActionFailed("there is no page to go back to")
        with self._changed:
            self._loading = True  # until the event says otherwise
        self.call("Page.navigateToHistoryEntry", {"entryId": history["entries"][index - 1]["id"]})
        self.loaded()

    def follow(self) -> bool:
        """Whether the page was going elsewhere; waits until it is there.

        Only what was read before a call that gives False is of one page. Raises ActionFailed, DesktopLost.
        """
        if self._asked == self._followed and not self._loading:
            return False
        self._followed = self._asked
        with self._changed:
            # Some navigations never start: downloads, empty answers.
            self._changed.wait_for(lambda: self._loading or bool(self.lost), _START_S)
        self.loaded()
        return True

    def loaded(self) -> None:
        """Wait until the page does not load any more. Raises ActionFailed, DesktopLost."""
        if self._loading:
            self._until(lambda: not self._loading, "the page did not load")
        # A document without a script of its own gets ours only when something asks it for one.
        with suppress(ActionFailed):  # it goes elsewhere once more: `follow` says so
            self.call("Runtime.evaluate", {"expression": "0"})

    def _until(self, true: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + LOAD_S
        with self._changed:
            while not true():
                if self.lost:
                    raise DesktopLost(self.lost)
                left = deadline - time.monotonic()
                if left <= 0:
                    raise ActionFailed(f"{otherwise} within {LOAD_S:g} s")
                self._changed.wait(left)

    # -- the end -----------------------------------------------------------------------------

    def give_up(self, what: str, seconds: float = ANSWER_S) -> DesktopLost:
        """Take the page for lost because `what` did not come; return the error to raise."""
        self.die(f"the page gave no answer to {what} for {seconds:g} s")
        with suppress(CdpError):
            self._connection.send("Target.closeTarget", {"targetId": self.id})
        return DesktopLost(self.lost)

    def die(self, cause: str) -> None:
        """Fail whoever waits for the page, now and later, with `cause`."""
        with self._changed:
            self.lost = self.lost or cause
            self._changed.notify_all()
        if self.session:
            self._connection.unsubscribe(self.session, self.lost)

    def dispose(self) -> None:
        """Remove the page with its context: storage, cookies, caches, workers."""
        self.die("the page was closed")
        with suppress(CdpError):
            context = {"browserContextId": self.context}
            self._connection.call("Target.disposeBrowserContext", context, timeout=_DISPOSE_S)

    # -- inside ------------------------------------------------------------------------------

    def _create(self, deadline: float) -> None:
        connection, spec = self._connection, self.spec
        window = {"url": "about:blank", "width": spec.width, "height": spec.height}
        made = connection.send(
            "Target.createTarget",
            {**window, "browserContextId": self.context, "enableBeginFrameControl": True},
        )
        self.id = str(made.result(deadline)["targetId"])
        attach = {"targetId": self.id, "flatten": True}
        made = connection.send("Target.attachToTarget", attach)
        self.session = str(made.result(deadline)["sessionId"])
        connection.subscribe(self.session, self._event)
        self._prepare(deadline)

    def _prepare(self, deadline: float) -> None:
        fetch = {"patterns": [{"urlPattern": "*", "requestStage": "Request"}]}
        replies = [
            self.send("Page.enable"),
            self.send("Fetch.enable", fetch),
            self.send("Target.setAutoAttach", _AUTO_ATTACH),
            *(
                self.send("Page.addScriptToEvaluateOnNewDocument", {"source": script})
                for script in self._scripts
            ),
            self._connection.send(
                "Browser.setDownloadBehavior",
                {"behavior": "deny", "browserContextId": self.context},
            ),
            # Granting an empty list refuses all others.
            self._connection.send(
                "Browser.grantPermissions", {"permissions": [], "browserContextId": self.context}
            ),
            self.send("Page.setLifecycleEventsEnabled", {"enabled": True}),
        ]
        for reply in replies:
            self._result(reply, deadline)
        self.navigate("about:blank")  # a document that has the scripts

    def _result(self, reply: Reply, deadline: float) -> dict[str, Any]:
        try:
            return reply.result(deadline)
        except NoAnswer:
            raise self.give_up(reply.method) from None
        except Gone as error:
            raise DesktopLost(self.lost or str(error)) from error
        except Refused as error:
            if self.lost:
                raise DesktopLost(self.lost) from error
            raise ActionFailed(str(error)) from error

    def _frame(self, picture: bool, jpeg: int = 0) -> dict[str, Any]:
        params: dict[str, object] = {"interval": _FRAME_MS}
        if picture and jpeg:
            params["screenshot"] = {"format": "jpeg", "quality": jpeg, "optimizeForSpeed": True}
        elif picture:
            params["screenshot"] = {"format": "png", "optimizeForSpeed": True}
        if not self._frames.acquire(timeout=3 * ANSWER_S):
            raise self.give_up("its turn for a frame")
        try:
            params["frameTimeTicks"] = time.monotonic() * 1000
            reply = self.send("HeadlessExperimental.beginFrame", params)
            if not reply.arrived(time.monotonic() + ANSWER_S):
                error = self.give_up("a frame")
                # Frames of other pages may only follow once this one is over.
                self._stuck(self.lost)
                raise error
        finally:
            self._frames.release()
        try:
            answer = self._result(reply, 0)
        except ActionFailed:
            return {}
        self.damaged |= bool(answer.get("hasDamage"))
        return answer

    def _event(self, method: str, params: dict[str, Any]) -> None:
        handler = _HANDLERS.get(method)
        if handler is not None:
            with suppress(CdpError, DesktopLost):
                handler(self, params)

    def _note(self, note: str) -> None:
        if len(self.notes) < _MAX_NOTES:
            self.notes.append(note)

    def _on_lifecycle(self, params: dict[str, Any]) -> None:
        if params["name"] == "load":
            with self._changed:
                self._loads.add(params["loaderId"])
                self._changed.notify_all()

    def _on_asked(self, params: dict[str, Any]) -> None:
        if params["frameId"] == self.id and params["disposition"] == "currentTab":
            self._asked += 1

    def _on_loading(self, params: dict[str, Any]) -> None:
        if params["frameId"] == self.id:
            with self._changed:
                self._asked += 1
                self._loading = True
                self._changed.notify_all()

    def _on_loaded(self, params: dict[str, Any]) -> None:
        if params["frameId"] == self.id:
            with self._changed:
                self._loading = False
                self._changed.notify_all()

    def _on_dialog(self, params: dict[str, Any]) -> None:
        answer = {"accept": True, "promptText": params.get("defaultPrompt", "")}
        self.send("Page.handleJavaScriptDialog", answer)
        self._note(f"{params['type']} dialog {params['message'][:200]!r} was accepted")

    def _on_request(self, params: dict[str, Any]) -> None:
        self._gate(self.session, params)

    def _gate(self, session: str, params: dict[str, Any]) -> None:
        url = str(params["request"]["url"])
        request = {"requestId": params["requestId"]}
        if self.spec.allows(url):
            self._connection.send("Fetch.continueRequest", request, session)
            return
        self._note(f"{url[:200]} was not loaded: it is outside the page's origins")
        refusal = {**request, "errorReason": "BlockedByClient"}
        self._connection.send("Fetch.failRequest", refusal, session)

    def _on_popup(self, params: dict[str, Any]) -> None:
        """A window of its own would be seen by nobody: its address opens in this page."""
        url = str(params.get("url", ""))
        self._note(f"a window for {url[:200]!r} was opened here instead")
        if self.spec.allows(url) and url not in ("", "about:blank"):
            self._loading = True
            self.send("Page.navigate", {"url": url})

    def _on_attached(self, params: dict[str, Any]) -> None:
        """A worker or a frame of another process waits to be let go: our scripts come first."""
        child = str(params["sessionId"])
        kind = str(params["targetInfo"]["type"])

        def event(method: str, params: dict[str, Any]) -> None:
            with suppress(CdpError):
                if method == "Fetch.requestPaused":
                    self._gate(child, params)
                elif method == "Target.attachedToTarget":
                    self._on_attached(params)

        self._connection.subscribe(child, event)
        for script in self._scripts:
            if kind == "iframe":
                source: dict[str, object] = {"source": script, "runImmediately": True}
                self._connection.send("Page.addScriptToEvaluateOnNewDocument", source, child)
            else:
                self._connection.send("Runtime.evaluate", {"expression": script}, child)
        if kind == "iframe":
            self._connection.send("Page.enable", {}, child)
        fetch = {"patterns": [{"urlPattern": "*", "requestStage": "Request"}]}
        self._connection.send("Fetch.enable", fetch, child)
        self._connection.send("Target.setAutoAttach", _AUTO_ATTACH, child)
        self._connection.send("Runtime.runIfWaitingForDebugger", {}, child)

    def _on_detached(self, params: dict[str, Any]) -> None:
        self._connection.unsubscribe(str(params["sessionId"]), "the worker or frame has ended")


_AUTO_ATTACH = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
_HANDLERS: dict[str, Callable[[Target, dict[str, Any]], None]] = {
    "Page.lifecycleEvent": Target._on_lifecycle,
    "Page.frameRequestedNavigation": Target._on_asked,
    "Page.frameStartedLoading": Target._on_loading,
    "Page.frameStoppedLoading": Target._on_loaded,
    "Page.javascriptDialogOpening": Target._on_dialog,
    "Page.windowOpen": Target._on_popup,
    "Fetch.requestPaused": Target._on_request,
    "Target.attachedToTarget": Target._on_attached,
    "Target.detachedFromTarget": Target._on_detached,
}
