"""The computer as one thing: its screen, input, programs, and the gate in front of them."""

from __future__ import annotations

import time

from guest import apps, shell
from guest.accessibility import Tree
from guest.browser import Browser
from guest.errors import ActionFailed
from guest.fencing import Gate, Ledger, Result
from guest.files import Home
from guest.input import Input
from guest.processes import Place
from guest.python import Python
from guest.screen import Screen
from guest.terminals import Terminals
from guest.windows import Windows
from trajectory import (
    Action,
    AskUser,
    Click,
    Drag,
    Fail,
    Finish,
    Hotkey,
    KeyDown,
    KeyUp,
    LongPress,
    MouseDown,
    MouseUp,
    Move,
    Navigate,
    NavigateBack,
    OpenApp,
    Scroll,
    Shell,
    Type,
    Wait,
)

_MAX_WAIT_MS = 60_000


class Computer:
    """Performs actions on one X display; every request of the server ends here."""

    def __init__(self, display: str, *, boot_id: str) -> None:
        self.boot_id = boot_id
        self.screen = Screen(display)
        self.windows = Windows(display)
        self.programs = Tree()
        self.browser = Browser(self.windows, self.programs, screen_width=self.screen.width)
        self.gate = Gate()
        self.ledger = Ledger()
        place = Place()
        self.files = Home(place.home)
        self.terminals = Terminals(self.gate, place)
        self.python = Python(self.gate, place)
        self._input = Input(display)

    def fence(self, epoch: int) -> int:
        """Raise the epoch and return it.

        Keys and buttons that the old holder left down go up; its terminals and its Python end.
        """
        return self.gate.raise_to(epoch, released=self._let_go)

    def renew(self, boot_id: str) -> None:
        """Belong to another start, as a fork or a restored machine does: no epoch, no ledger yet."""
        self.gate.start_over(released=self._let_go)
        self.boot_id, self.ledger = boot_id, Ledger()

    def perform(self, action: Action, *, epoch: int, action_id: str) -> tuple[Result, bool]:
        """Do `action` once and return (result, replayed); raises StaleLease, ActionFailed."""
        return self.ledger.once(action_id, lambda: self._perform(action, epoch))

    def shell(
        self, command: str, *, epoch: int, action_id: str, timeout_ms: int
    ) -> tuple[Result, bool]:
        """Run a command once and return (result, replayed)."""
        action = Shell(command=command, timeout_ms=timeout_ms)
        return self.ledger.once(action_id, lambda: self._perform(action, epoch))

    def launch(self, argv: list[str], *, epoch: int, action_id: str) -> tuple[Result, bool]:
        """Start a program once and return (result, replayed)."""

        def start() -> Result:
            with self.gate.entered(epoch):
                shell.launch(argv)
            return Result()

        return self.ledger.once(action_id, start)

    def _let_go(self) -> None:
        self._input.let_go()
        self.terminals.close_all()
        self.python.close()

    def _perform(self, action: Action, epoch: int) -> Result:
        match action:
            case Shell(command=command, timeout_ms=timeout_ms):
                # Not under the gate: a long command must not hold up the mouse.
                self.gate.check(epoch)
                return shell.run(command, timeout_ms=timeout_ms)
            case Wait(duration_ms=duration_ms):
                self.gate.check(epoch)
                time.sleep(min(duration_ms, _MAX_WAIT_MS) / 1000)
            case Finish() | Fail() | AskUser():
                self.gate.check(epoch)  # said to people; a computer has nothing to do for them
            case _:
                with self.gate.entered(epoch):
                    try:
                        self._input_action(action)
                    except ValueError as error:
                        raise ActionFailed(str(error)) from error
        return Result()

    def _input_action(self, action: Action) -> None:
        match action:
            case Click(x=x, y=y, button=button, count=count, modifiers=modifiers):
                self._input.click(x, y, button, count, modifiers)
            case Move(x=x, y=y):
                self._input.move(x, y)
            case MouseDown(button=button):
                self._input.press(button)
            case MouseUp(button=button):
                self._input.release(button)
            case Drag(path=path, button=button):
                self._input.drag(path, button)
            case Scroll(x=x, y=y, dx=dx, dy=dy):
                self._input.scroll(x, y, dx, dy)
            case LongPress(x=x, y=y, duration_ms=duration_ms):
                self._input.hold(x, y, min(duration_ms, _MAX_WAIT_MS))
            case KeyDown(key=key):
                self._input.key_down(key)
            case KeyUp(key=key):
                self._input.key_up(key)
            case Hotkey(keys=keys):
                self._input.hotkey(keys)
            case Type(text=text, submit=submit):
                self._input.type(text + "\n" if submit else text)
            case Navigate(url=url):
                self.browser.open(url)
            case NavigateBack():
                self._input.hotkey(("alt", "left"))
            case OpenApp(name=name):
                apps.open_app(name, self.windows)
            case _:
                raise ActionFailed(f"a desktop can't do {type(action).__name__}")
