"""`python -m sandbox.providers.browser.guest`: one page as a sandbox of its own.

It speaks the guests' HTTP API on one unix socket and RFB on another, so that everything built for
desktops works on it: the relay, the workbench, capture, taking over and fencing.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import math
import os
import signal
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, cast

from guest.computer import Computer
from guest.errors import ActionFailed
from guest.fencing import Gate, Ledger, Result
from guest.server import Server
from sandbox import provider
from sandbox.provider import DesktopLost, Frame
from sandbox.providers.browser import BrowserPage, Fleet, PageSpec
from sandbox.providers.browser.input import Hands
from sandbox.providers.browser.view import View
from sandbox.providers.hand import Reader
from sandbox.providers.screen import Screen
from sandbox.screen.rfb import Key, Pointer
from trajectory import Action, AskUser, Fail, Finish, Navigate, Shell, Wait

_MAX_WAIT_MS = 60_000
_WATCH_S = 0.1
NOTHING_HERE = "a browser page has no {}: use a desktop for this task"


class PageComputer:
    """What guest.server.Server serves, made of a page. `shared` maps guest folders to the host's.

    `ended` is called with the cause when the page is lost; it does not return.
    """

    def __init__(
        self,
        page: BrowserPage,
        *,
        boot_id: str,
        shared: Mapping[str, str],
        ended: Callable[[str], NoReturn],
    ) -> None:
        self.boot_id, self._page, self._shared, self._ended = boot_id, page, shared, ended
        self.gate, self.ledger = Gate(), Ledger()
        self.width, self.height = page.width, page.height
        # A server asks a computer for its screen, its browser and its files: a page is all three.
        self.screen = self.browser = self.files = self

    # -- the computer ------------------------------------------------------------------------

    def fence(self, epoch: int) -> int:
        """Raise the epoch and return it; what the old holder left down goes up."""
        return self.gate.raise_to(epoch, released=self._let_go)

    def perform(self, action: Action, *, epoch: int, action_id: str) -> tuple[Result, bool]:
        """Do `action` once and return (result, replayed); raises StaleLease, ActionFailed."""
        return self.ledger.once(action_id, lambda: self._perform(action, epoch))

    def shell(
        self, command: str, *, epoch: int, action_id: str, timeout_ms: int
    ) -> tuple[Result, bool]:
        """Raise StaleLease or ActionFailed: a page has no shell."""
        action = Shell(command=command, timeout_ms=timeout_ms)
        return self.ledger.once(action_id, lambda: self._perform(action, epoch))

    def launch(self, argv: list[str], *, epoch: int, action_id: str) -> tuple[Result, bool]:
        """Raise StaleLease or ActionFailed: a page has no programs."""

        def refuse() -> Result:
            self.gate.check(epoch)
            raise ActionFailed(NOTHING_HERE.format("programs"))

        return self.ledger.once(action_id, refuse)

    def _perform(self, action: Action, epoch: int) -> Result:
        match action:
            case Wait(duration_ms=duration_ms):
                self.gate.check(epoch)
                with self._errors():
                    self._page.frames(min(duration_ms, _MAX_WAIT_MS))
            case Finish() | Fail() | AskUser():
                self.gate.check(epoch)  # said to people
            case Shell():
                self.gate.check(epoch)
                raise ActionFailed(NOTHING_HERE.format("shell"))
            case _:
                with self.gate.entered(epoch), self._errors():
                    done = self._page.perform(
                        self._located(action), epoch=0, action_id=uuid.uuid4().hex
                    )
                    return Result(output=done.output)
        return Result()

    def _located(self, action: Action) -> Action:
        """Return `action` with an address inside a shared folder moved to where the host has it."""
        if isinstance(action, Navigate):
            for guest, host in self._shared.items():
                if action.url.startswith(prefix := f"file://{guest}/"):
                    return Navigate(f"file://{host}/{action.url.removeprefix(prefix)}")
        return action

    def _let_go(self) -> None:
        with self._errors():
            self._page._deliver(self._page._hands.let_go())

    # -- its screen --------------------------------------------------------------------------

    def grab(self) -> Frame:
        """Run a frame and return it."""
        with self._errors():
            return self._page.observe()

    def png(self, frame: Frame) -> bytes:
        return frame.png

    def settle(self, *, quiet_ms: int, max_ms: int) -> bool:
        """Wait until the picture has not changed for `quiet_ms`; False if `max_ms` passed first."""
        with self._errors():
            return self._page.settle(quiet_ms=quiet_ms, max_ms=max_ms)

    # -- its browser -------------------------------------------------------------------------

    def look(self) -> tuple[str, list[dict[str, Any]]]:
        """Return (url, elements)."""
        with self._errors():
            elements = self._page.step(None, elements=True, picture=False).elements or ()
            url = str(self._page.evaluate("location.href"))
        return url, [dataclasses.asdict(element) for element in elements]

    def evaluate(self, expression: str) -> object:
        """Return the value of a JavaScript expression; raises ActionFailed if it throws."""
        with self._errors():
            return self._page.evaluate(expression)

    # -- its files ---------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        """Raise ActionFailed: a page has no files."""
        raise ActionFailed(NOTHING_HERE.format("files"))

    def write(self, path: str, data: bytes) -> None:
        """Raise ActionFailed: a page has no files."""
        raise ActionFailed(NOTHING_HERE.format("files"))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except provider.ActionFailed as error:
            raise ActionFailed(str(error)) from error
        except DesktopLost as error:
            self._ended(str(error))


class Hand:
    """A person's mouse and keyboard on the page; it has its own keys down, apart from the agent's."""

    def __init__(self, page: BrowserPage) -> None:
        self._page, self._reader = page, Reader()
        self._hands = Hands(page.width, page.height)

    def act(self, event: Key | Pointer) -> None:
        """Send what `event` does; the view's next frame delivers it. A place outside is nothing."""
        for made in self._reader.read(event):
            with suppress(ValueError, DesktopLost):
                for command in self._hands.commands(made.action) or ():
                    if "clickCount" in command.params:
                        command.params["clickCount"] = made.presses
                    self._page.target.send(command.method, command.params)


async def _serve(page: BrowserPage, folder: Path, name: str, over: threading.Event) -> None:
    """Serve RFB until the page is lost or `over`; the file `ready` says that both sockets listen."""
    view = View(page.target)
    screen = Screen(view, Hand(page).act, width=page.width, height=page.height, name=name)
    server = await screen.listen(folder / "rfb.sock")
    (folder / "ready").touch()
    while not page.target.lost and not over.is_set():
        await asyncio.sleep(_WATCH_S)
    server.close()
    view.close()


def main() -> None:
    """Serve until told to end (SIGTERM) or until the page is lost; `cause` then says why."""
    parser = argparse.ArgumentParser(prog="sandbox.providers.browser.guest", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--boot-id", required=True)
    parser.add_argument("--name", default="page")
    parser.add_argument("--size", type=int, nargs=2, default=(1280, 720))
    parser.add_argument("--shared", nargs=2, action="append", default=[])
    options = parser.parse_args()
    os.umask(0o077)
    over, ending = threading.Event(), threading.Lock()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    folder: Path = options.folder

    fleet = Fleet(1, folder / "browser", pages=1, idle_s=math.inf, max_age_s=math.inf)

    def end(cause: str) -> NoReturn:
        ending.acquire()  # for good: one thread ends the process, the others wait for that
        if cause:
            (folder / "cause").write_text(cause)
        fleet.close()
        os._exit(1 if cause else 0)

    width, height = options.size
    shared = dict(options.shared)
    origins = tuple(f"file://{host}/" for host in shared.values())
    page = fleet.open(PageSpec(width=width, height=height, origins=origins))
    computer = PageComputer(page, boot_id=options.boot_id, shared=shared, ended=end)
    # The server asks for no more than PageComputer has; its type names the class it grew up with.
    server = Server(folder / "guest.sock", cast(Computer, computer), limits="none")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    asyncio.run(_serve(page, folder, options.name, over))
    end(page.target.lost if not over.is_set() else "")


if __name__ == "__main__":
    main()
