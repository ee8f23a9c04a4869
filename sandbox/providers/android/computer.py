"""A phone as what guest.server serves: actions, files and commands behind an epoch and a ledger."""

from __future__ import annotations

import base64
import dataclasses
import posixpath
import shlex
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from guest.errors import ActionFailed, NotFound
from guest.fencing import Gate, Ledger, Result
from sandbox.provider import DesktopLost
from sandbox.providers.android import apps, gestures
from sandbox.providers.android.adb import DeviceGone
from sandbox.providers.android.phone import FOLDER, Phone, Refused
from trajectory import (
    Action,
    AskUser,
    Click,
    Drag,
    Fail,
    Finish,
    Hotkey,
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

_MAX_WAIT_MS, _MAX_SHELL_MS = 60_000, 600_000
_MAX_OUTPUT, _MAX_FILE = 64 << 10, 32 << 20
_SHARED = "/sdcard"
_POLL_S = 0.02
_LINE_BYTES = 2500
_TEXT_PART = 300


class PhoneComputer:
    """Performs actions on one claimed phone. `ended` is called with the cause when it is lost.

    The epoch and the ledger live in this process, the only one of its host that may act on the
    phone: callers agree because all of them ask it. If it is killed in mid-action the sandbox is
    lost under its boot_id, so nobody asks for that action a second time.
    """

    def __init__(self, phone: Phone, *, boot_id: str, ended: Callable[[str], NoReturn]) -> None:
        self.boot_id, self._phone, self._ended = boot_id, phone, ended
        self.gate, self.ledger = Gate(), Ledger()
        self.width, self.height = phone.width, phone.height
        self._fingers = gestures.Screen(phone.width, phone.height)
        self._place: tuple[int, int] | None = None
        self._down = False
        self._settling = threading.Lock()
        # A server asks a computer for its screen, its browser and its files: a phone is all three.
        self.screen = self.browser = self.files = self

    def fence(self, epoch: int) -> int:
        """Raise the epoch and return it; a finger that the old holder left down goes up."""
        return self.gate.raise_to(epoch, released=self._let_go)

    def perform(self, action: Action, *, epoch: int, action_id: str) -> tuple[Result, bool]:
        """Do `action` once and return (result, replayed); raises StaleLease, ActionFailed."""
        return self.ledger.once(action_id, lambda: self._perform(action, epoch))

    def shell(
        self, command: str, *, epoch: int, action_id: str, timeout_ms: int
    ) -> tuple[Result, bool]:
        """Run a command by the phone's sh in its folder, as adb's user; return (result, replayed)."""
        action = Shell(command=command, timeout_ms=timeout_ms)
        return self.ledger.once(action_id, lambda: self._perform(action, epoch))

    def launch(self, argv: list[str], *, epoch: int, action_id: str) -> tuple[Result, bool]:
        """Start argv[0], a package or package/activity, by `am start`; the rest are its options."""

        def start() -> Result:
            with self.gate.entered(epoch), self._errors():
                if not argv or not apps.is_package(argv[0]):
                    raise ActionFailed(f"a phone starts packages, such as com.example.app: {argv}")
                component = argv[0] if "/" in argv[0] else apps.find(self._phone, argv[0])
                self._phone.do(f"am start -n {shlex.join([component, *argv[1:]])}")
            return Result()

        return self.ledger.once(action_id, start)

    # -- actions -----------------------------------------------------------------------------

    def _perform(self, action: Action, epoch: int) -> Result:
        match action:
            case Shell(command=command, timeout_ms=timeout_ms):
                self.gate.check(epoch)
                with self._errors():
                    return self._run(command, min(timeout_ms, _MAX_SHELL_MS))
            case Wait(duration_ms=duration_ms):
                self.gate.check(epoch)
                time.sleep(min(duration_ms, _MAX_WAIT_MS) / 1000)
            case Finish() | Fail() | AskUser():
                self.gate.check(epoch)  # said to people; a phone has nothing to do for them
            case _:
                with self.gate.entered(epoch), self._errors():
                    self._act(action)
        return Result()

    def _act(self, action: Action) -> None:
        fingers = self._fingers
        match action:
            case Click(x=x, y=y, button=button, count=count, modifiers=modifiers):
                self._send(fingers.tap(x, y, button=button, count=count, modifiers=modifiers))
            case LongPress(x=x, y=y, duration_ms=ms):
                self._send(fingers.hold(x, y, min(ms, _MAX_WAIT_MS // 6)))
            case Drag(path=path, button="left"):
                self._send(fingers.drag(path))
            case Scroll(x=x, y=y, dx=dx, dy=dy):
                for swipe in fingers.scroll(x, y, dx, dy).split(" && "):
                    self._send(swipe)
            case Move(x=x, y=y):
                self._move(x, y)
            case MouseDown(button="left") | MouseUp(button="left"):
                self._finger(down=isinstance(action, MouseDown))
            case Hotkey(keys=keys):
                self._send(gestures.keys(keys))
            case Type(text=text, submit=submit):
                self.type(text + "\n" if submit else text)
            case Navigate(url=url):
                self._send(f"am start -a android.intent.action.VIEW -d {shlex.quote(url)}")
            case NavigateBack():
                self._send(f"input keyevent {gestures.BACK}")
            case OpenApp(name=name):
                self._send(f"am start -n {shlex.quote(apps.find(self._phone, name))}")
            case _:
                raise ActionFailed(f"a phone can't do {type(action).__name__}")

    def _send(self, line: str) -> None:
        self._phone.do(line)

    def type(self, text: str) -> None:
        """Enter `text`; raises ValueError, before anything is entered, for what can't be entered."""
        if gestures.plain(text):
            lines = gestures.typing(text)
        elif self._phone.any_text:
            parts = [text[at : at + _TEXT_PART] for at in range(0, len(text), _TEXT_PART)]
            lines = [
                f"am broadcast -a ADB_INPUT_B64 --es msg {base64.b64encode(p.encode()).decode()}"
                for p in parts
            ]
        else:
            strange = next(c for c in text if not gestures.plain(c))
            raise ValueError(
                f"this phone can't enter {strange!r}: `input text` knows a US keyboard alone; install "
                "ADBKeyboard (com.android.adbkeyboard) on it and start it again"
            )
        batch: list[str] = []
        for line in lines:
            if batch and sum(map(len, batch)) + len(line) > _LINE_BYTES:
                self._send(" && ".join(batch))
                batch = []
            batch.append(line)
        if batch:
            self._send(" && ".join(batch))

    def _move(self, x: int, y: int) -> None:
        line = self._fingers.touch("MOVE", x, y)
        self._place = (x, y)
        if self._down:
            self._send(line)

    def _finger(self, *, down: bool) -> None:
        if self._place is None:
            raise ActionFailed("say where the finger is first: move")
        self._send(self._fingers.touch("DOWN" if down else "UP", *self._place))
        self._down = down

    def _let_go(self) -> None:
        with self._errors():
            if self._down and self._place is not None:
                self._send(self._fingers.touch("UP", *self._place))
            # The next holder does not take over where this one's finger was.
            self._down, self._place = False, None

    def _run(self, command: str, timeout_ms: int) -> Result:
        seconds = timeout_ms / 1000
        # One group for the command, one for its watch: each is ended with all it started.
        script = (
            f"cd {FOLDER}; setsid sh -c {shlex.quote(command)} & p=$!; "
            f"setsid sh -c 'sleep {seconds:g}; kill -9 -'$p >/dev/null 2>&1 </dev/null & w=$!; "
            "wait $p; c=$?; kill -9 -$w 2>/dev/null; exit $c"
        )
        began = time.monotonic()
        answer = self._phone.run(script, timeout_s=seconds + 10, most=8 << 20)
        text = answer.output[:_MAX_OUTPUT].decode(errors="replace")
        if len(answer.output) > _MAX_OUTPUT:
            text += f"\n[cut: {len(answer.output)} bytes in all]"
        if answer.code == 137 and time.monotonic() - began >= seconds:
            return Result(output=f"{text}\n[ended after {timeout_ms} ms]", exit_code=124)
        return Result(output=text, exit_code=answer.code)

    # -- its screen and its tree -------------------------------------------------------------

    def grab(self) -> bytes:
        """Return the picture, PNG as the phone encoded it."""
        with self._errors():
            return self._phone.png()

    def png(self, picture: bytes) -> bytes:
        return picture

    def settle(self, *, quiet_ms: int, max_ms: int) -> bool:
        """Wait until the picture has not changed for `quiet_ms`; False if `max_ms` passed first."""
        now = time.monotonic()
        deadline, quiet_since = now + max_ms / 1000, now
        last = self.grab()
        while True:
            now = time.monotonic()
            if now - quiet_since >= quiet_ms / 1000:
                return True
            if now >= deadline:
                return False
            time.sleep(_POLL_S)
            current = self.grab()
            if current != last:
                quiet_since = time.monotonic()
            last = current

    def look(self) -> tuple[str, list[dict[str, Any]]]:
        """Return ("", elements); raises ActionFailed where the phone gives no tree."""
        with self._errors():
            return "", [dataclasses.asdict(element) for element in self._phone.elements()]

    def evaluate(self, expression: str) -> object:
        """Raise ActionFailed: a phone has no page."""
        raise ActionFailed("a phone has no page: use a browser for this task")

    # -- its files ---------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        """Return a file below /sdcard; raises NotFound, ActionFailed (outside, too big)."""
        whole = shlex.quote(_inside(path))
        with self._errors():
            size = self._phone.run(f"[ -f {whole} ] && stat -c %s {whole}").text.strip()
            if not size.isdigit():
                raise NotFound(f"no file {path}")
            if int(size) > _MAX_FILE:
                raise ActionFailed(f"{path} is bigger than {_MAX_FILE} bytes")
            return self._phone.run(f"cat {whole}", timeout_s=120, most=_MAX_FILE + 1).output

    def write(self, path: str, data: bytes) -> None:
        """Write a file below /sdcard, whole or not at all, with the folders above it."""
        whole = _inside(path)
        part = f"{posixpath.dirname(whole)}/.{posixpath.basename(whole)}.part"
        with self._errors(), tempfile.NamedTemporaryFile() as file:
            Path(file.name).write_bytes(data)
            self._phone.do(f"mkdir -p {shlex.quote(posixpath.dirname(whole))}")
            self._phone.adb.device("push", file.name, part, timeout_s=120)
            self._phone.do(f"mv {shlex.quote(part)} {shlex.quote(whole)}")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except DeviceGone as error:
            self._ended(str(error))
        except DesktopLost as error:
            self._ended(str(error))
        except (Refused, ValueError) as error:
            raise ActionFailed(str(error)) from error


def _inside(path: str) -> str:
    """Return where `path` is: relative ones lie in our folder, absolute ones anywhere below /sdcard."""
    absolute = path.startswith("/")
    top = _SHARED if absolute else FOLDER
    whole = posixpath.normpath(posixpath.join(FOLDER, path.removeprefix("~/")))
    if not whole.startswith(f"{top}/") or "\0" in path:
        raise ActionFailed(f"{path} is outside the phone's shared storage")
    return whole
