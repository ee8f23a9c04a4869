"""Fleet: several headless browsers of this process, one session to one page."""

from __future__ import annotations

import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sandbox.provider import ActionFailed, DesktopLost, ProvisionFailed, SandboxError
from sandbox.providers.browser.cdp import CdpError
from sandbox.providers.browser.page import BrowserPage
from sandbox.providers.browser.process import CrashedAtStart, Process, sweep
from sandbox.providers.browser.spec import PageSpec
from sandbox.providers.browser.target import Target

_KEEP_S = 5.0
_TARGETS = 3

_OTHER_KIND = "another kind was needed"
_POPUPS = Path(__file__).with_name("popups.js").read_text(encoding="utf-8")


class FleetFull(ProvisionFailed):
    """Every page of the fleet is taken and none came back within the limit."""


@dataclass(eq=False, slots=True)
class _Browser:
    """One process and its pages; `retire` says why it takes no more."""

    loopback: bool
    process: Process | None = None
    pages: dict[str, BrowserPage] = field(default_factory=dict)
    frames: threading.Lock = field(default_factory=threading.Lock)
    reserved: int = 0
    opened: int = 0
    retire: str = ""
    memory: int = 0


class Fleet:
    """Up to `browsers` processes with up to `pages` pages each; safe to share between threads.

    A browser is replaced after `max_opened` pages, after `max_age_s`, and above `max_mb` (proportional
    set size), once its last page is closed. A page that nobody has used for `idle_s` is closed.
    `state` holds the profiles; a folder of its own if not given.
    """

    def __init__(
        self,
        browsers: int = 2,
        state: Path | None = None,
        *,
        pages: int = 16,
        max_opened: int = 2000,
        max_age_s: float = 3600.0,
        max_mb: int = 2048,
        idle_s: float = 900.0,
    ) -> None:
        self._temporary = None if state else tempfile.TemporaryDirectory(prefix="tandem-fleet-")
        self.state = state or Path(self._temporary.name if self._temporary else "")
        self.state.mkdir(parents=True, exist_ok=True)
        sweep(self.state)
        self._slots, self._pages = browsers, pages
        self._max_opened, self._max_age_s, self._max_mb = max_opened, max_age_s, max_mb
        self._idle_s = idle_s
        self._browsers: list[_Browser] = []
        self._ends: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._ending: list[threading.Thread] = []
        self._over = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="fleet-keeper", daemon=True)
        self._keeper.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def open(self, spec: PageSpec | None = None, *, timeout: float = 60.0) -> BrowserPage:
        """Return a fresh page of `spec`; waits up to `timeout` seconds for a free one.

        Raises FleetFull, ProvisionFailed, BrowserMissing.
        """
        spec = spec or PageSpec()
        deadline, crashed = time.monotonic() + timeout, False
        while True:
            browser = self._reserve(spec, deadline)
            try:
                return self._open(browser, spec)
            except ProvisionFailed as error:
                self._end(browser, str(error))
                if crashed or not isinstance(error, CrashedAtStart):
                    raise
                crashed = True  # seen once in thousands of starts on busy cores; twice is no chance
            except (ActionFailed, CdpError, DesktopLost) as error:
                with self._changed:  # its other pages go on
                    browser.retire = browser.retire or f"no page could be opened: {error}"
                if time.monotonic() > deadline:
                    raise ProvisionFailed(f"no page could be opened: {error}") from error
            finally:
                with self._changed:
                    browser.reserved -= 1
                    if browser.retire and not _load(browser):
                        self._drop(browser, browser.retire)
                    self._changed.notify_all()

    def stats(self) -> dict[str, Any]:
        """Return {"browsers", "pages", "opened", "memory_mb", "ends": {cause: count}}."""
        with self._changed:
            running = [b for b in self._browsers if b.process is not None]
            pages = sum(len(b.pages) for b in running)
            opened = sum(b.opened for b in running)
        memory = sum(b.process.memory() for b in running if b.process is not None)
        return {
            "browsers": len(running),
            "pages": pages,
            "opened": opened,
            "memory_mb": round(memory / 2**20, 1),
            "ends": dict(self._ends),
        }

    def close(self) -> None:
        """End every browser and remove what they left."""
        self._over.set()
        with self._changed:
            for browser in list(self._browsers):
                self._drop(browser, "the fleet was closed")
        for thread in self._ending:
            thread.join()
        if threading.current_thread() is not self._keeper:
            self._keeper.join()
        if self._temporary is not None:
            self._temporary.cleanup()

    # -- opening -----------------------------------------------------------------------------

    def _reserve(self, spec: PageSpec, deadline: float) -> _Browser:
        """Return a browser with a place kept for the caller: the least busy, a new one if allowed."""
        with self._changed:
            while True:
                if self._over.is_set():
                    raise ProvisionFailed("the fleet was closed")
                browser = self._choose(spec)
                if browser is not None:
                    browser.reserved += 1
                    browser.opened += 1
                    if browser.opened >= self._max_opened:
                        browser.retire = browser.retire or "number of pages"
                    return browser
                left = deadline - time.monotonic()
                if left <= 0:
                    raise FleetFull(
                        f"all {self._slots * self._pages} pages of {self._slots} browsers are taken"
                    )
                self._changed.wait(left)

    def _choose(self, spec: PageSpec) -> _Browser | None:
        fitting = [
            b
            for b in self._browsers
            if b.loopback == spec.loopback and not b.retire and _load(b) < self._pages
        ]
        best = min(fitting, key=_load, default=None)
        if best is not None and (not _load(best) or len(self._browsers) >= self._slots):
            return best
        if len(self._browsers) >= self._slots:
            idle = next((b for b in self._browsers if not _load(b)), None)
            if idle is None:
                self._make_room(spec)
                return None
            self._drop(idle, idle.retire or _OTHER_KIND)
        browser = _Browser(spec.loopback)
        self._browsers.append(browser)
        return browser

    def _make_room(self, spec: PageSpec) -> None:
        """Let one browser run empty where none is of the kind that is asked for.

        Else a stream of pages of one kind would keep the other kind waiting for ever.
        """
        alike = any(b.loopback == spec.loopback and not b.retire for b in self._browsers)
        if not alike and not any(b.retire for b in self._browsers):
            min(self._browsers, key=_load).retire = _OTHER_KIND

    def _open(self, browser: _Browser, spec: PageSpec) -> BrowserPage:
        process = self._started(browser)
        scripts: list[str] = [_POPUPS]
        if spec.clock:
            from sandbox.providers.browser.clock import Clock

            scripts += Clock.scripts(spec.seed)
        target = self._shown(browser, process, spec, scripts)
        page = BrowserPage(target, pid=process.pid, closed=lambda page: self._close(browser, page))
        if spec.clock:
            page.clock = Clock(page)
        with self._changed:
            if browser not in self._browsers:
                raise DesktopLost(process.connection.gone or "the browser was closed")
            browser.pages[target.id] = page
        return page

    def _shown(
        self, browser: _Browser, process: Process, spec: PageSpec, scripts: list[str]
    ) -> Target:
        """Return a target that has given a picture.

        On busy cores one in some hundred never gives any: its frames run without damage from the
        first on, and no size, navigation or reload mends that. Those that gave one go on to.
        """
        for left in reversed(range(_TARGETS)):
            target = Target(
                process.connection,
                spec,
                browser.frames,
                scripts=scripts,
                stuck=lambda cause: self._end(browser, cause),
            )
            try:
                target.frame(picture=True)
                return target
            except BaseException as error:
                target.dispose()
                if not (left and isinstance(error, DesktopLost)):
                    raise
        raise AssertionError("the last one is returned or raises")

    def _started(self, browser: _Browser) -> Process:
        with browser.frames:  # one thread starts it, the others wait
            if browser.process is None:
                browser.process = Process(
                    self.state,
                    loopback=browser.loopback,
                    lost=lambda cause: self._lost(browser, cause),
                )
                connection = browser.process.connection
                connection.subscribe("", lambda method, params: _event(browser, method, params))
                connection.call("Target.setDiscoverTargets", {"discover": True})
        with self._changed:
            dropped = browser not in self._browsers
        if dropped:
            browser.process.close("the fleet was closed")
        return browser.process

    # -- closing -----------------------------------------------------------------------------

    def _close(self, browser: _Browser, page: BrowserPage) -> None:
        with self._changed:
            known = browser.pages.pop(page.target.id, None)
        if known is None:
            return
        page.target.dispose()
        with self._changed:
            if browser.retire and not _load(browser):
                self._drop(browser, browser.retire)
            self._changed.notify_all()

    def _drop(self, browser: _Browser, cause: str) -> None:
        """Take a browser out; the lock is held, the process ends on a thread of its own."""
        if browser not in self._browsers:
            return
        self._browsers.remove(browser)
        self._ends[cause] += 1
        self._changed.notify_all()
        if browser.process is not None:
            self._ending = [thread for thread in self._ending if thread.is_alive()]
            self._ending.append(threading.Thread(target=browser.process.close, args=(cause,)))
            self._ending[-1].start()

    def _end(self, browser: _Browser, cause: str) -> None:
        """End a browser that can't be trusted any more, with all its pages."""
        with self._changed:
            self._drop(browser, cause)
            pages = list(browser.pages.values())
        for page in pages:
            page.target.die(cause)

    def _lost(self, browser: _Browser, cause: str) -> None:
        """The browser's pipe broke: called on its reader thread."""
        self._end(browser, cause)

    # -- keeping -----------------------------------------------------------------------------

    def _keep(self) -> None:
        while not self._over.wait(_KEEP_S):
            with suppress(SandboxError, CdpError, OSError):
                self.tend()

    def tend(self) -> None:
        """Close idle pages and retire browsers by age and memory; runs by itself every few seconds."""
        now = time.monotonic()
        with self._changed:
            browsers = [b for b in self._browsers if b.process is not None]
        for browser in browsers:
            for page in list(browser.pages.values()):
                if page.target.lost or now - page.used_at > self._idle_s:
                    page.target.die(f"the page was closed: nobody used it for {self._idle_s:g} s")
                    self._close(browser, page)
            process = browser.process
            if process is None:
                continue
            browser.memory = process.memory()
            with self._changed:
                if now - process.started_at > self._max_age_s:
                    browser.retire = browser.retire or "age"
                elif browser.memory > self._max_mb * 2**20:
                    browser.retire = browser.retire or "memory"
                if browser.retire and not _load(browser):
                    self._drop(browser, browser.retire)


def _load(browser: _Browser) -> int:
    return len(browser.pages) + browser.reserved


def _event(browser: _Browser, method: str, params: dict[str, Any]) -> None:
    """What the browser says about its targets: a renderer that died, a window that was opened."""
    process = browser.process
    if process is None:
        return
    if method == "Target.targetCrashed":
        page = browser.pages.get(str(params["targetId"]))
        if page is not None:
            page.target.die(
                f"the page's renderer died: {params['status']} (code {params['errorCode']})"
            )
    elif method == "Target.targetCreated" and params["targetInfo"].get("openerId"):
        with suppress(CdpError):
            target = {"targetId": params["targetInfo"]["targetId"]}
            process.connection.send("Target.closeTarget", target)
