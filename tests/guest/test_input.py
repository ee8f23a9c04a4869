"""Mouse and keyboard, proved by what real programs received."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

from sandbox.provider import ActionFailed, ActionResult, Desktop
from tests.sandbox.desktops import needs_local, new_id
from trajectory import (
    Action,
    Click,
    Drag,
    Hotkey,
    KeyDown,
    KeyUp,
    LongPress,
    MouseDown,
    MouseUp,
    Move,
    OpenApp,
    Scroll,
    Type,
)  # fmt: skip

pytestmark = needs_local
Do = Callable[[Action], ActionResult]
TEXTS = [
    "plain words 0123",
    "<>|&;~`'\"\\ !@#$%^*()_+-={}[]:?,./",
    "MiXeD Case",
    "é ü ß ñ € “quotes” — …",
    "你好，世界 Привет γειά שלום",
    "👍🏽🎉",
    "aéaéaé<你<你",
]


@pytest.fixture
def terminal(booted: Desktop, epoch: int) -> Callable[[str], None]:
    """Run a command in a terminal that fills the screen and has the focus, once it is there."""

    def open_terminal(command: str) -> None:
        script = f"touch ~/up.txt; {command}"
        argv = ["xterm", "-maximized", "-e", "sh", "-c", script]
        booted.launch(argv, epoch=epoch, action_id=new_id())
        _wait(lambda: _read(booted, "up.txt") is not None)
        booted.settle(quiet_ms=200, max_ms=5000)

    return open_terminal


def _read(desktop: Desktop, path: str) -> str | None:
    try:
        return desktop.read_file(path).decode()
    except ActionFailed:
        return None


def _wait(done: Callable[[], object], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("text", TEXTS)
def test_text_arrives_as_written(
    booted: Desktop, do: Do, terminal: Callable[[str], None], text: str
) -> None:
    terminal("cat > typed.txt")
    do(Type(text, submit=True))
    _wait(lambda: (_read(booted, "typed.txt") or "").endswith("\n"))
    assert _read(booted, "typed.txt") == text + "\n"


def test_more_rare_characters_than_spare_keys(
    booted: Desktop, do: Do, terminal: Callable[[str], None]
) -> None:
    terminal("cat > typed.txt")
    text = "".join(chr(0x4E00 + n) for n in range(200))
    do(Type(text, submit=True))
    _wait(lambda: (_read(booted, "typed.txt") or "").endswith("\n"))
    assert _read(booted, "typed.txt") == text + "\n"


def test_caps_lock_does_not_turn_text_round(
    booted: Desktop, do: Do, terminal: Callable[[str], None]
) -> None:
    terminal("cat > typed.txt")
    do(Hotkey(("capslock",)))
    do(Type("Abc", submit=True))
    _wait(lambda: (_read(booted, "typed.txt") or "").endswith("\n"))
    assert _read(booted, "typed.txt") == "Abc\n"


def test_keys_and_hotkeys(booted: Desktop, do: Do, terminal: Callable[[str], None]) -> None:
    terminal("cat > typed.txt")
    do(Type("abX"))
    do(Hotkey(("backspace",)))
    do(KeyDown("c"))
    do(KeyUp("c"))
    do(Hotkey(("enter",)))
    do(Hotkey(("ctrl", "d")))
    _wait(lambda: _read(booted, "typed.txt") == "abc\n")


# xev writes every event of its window.
_XEV = [
    "sh",
    "-c",
    "exec stdbuf -oL xev -geometry 1000x600+20+20 -event button -event mouse > ~/xev.txt",
]


@pytest.fixture
def events(booted: Desktop, epoch: int) -> Callable[[str], list[tuple[str, ...]]]:
    """Find what the window saw: each match of a pattern in xev's log so far."""
    booted.launch(_XEV, epoch=epoch, action_id=new_id())
    _wait(lambda: "Outer window" in (_read(booted, "xev.txt") or ""))
    booted.settle(quiet_ms=200, max_ms=5000)

    def found(pattern: str) -> list[tuple[str, ...]]:
        return re.findall(pattern, _read(booted, "xev.txt") or "", re.DOTALL)

    return found


_PRESS = r"(ButtonPress|ButtonRelease) event.*?root:\((\d+),(\d+)\).*?state (0x\w+), button (\d+)"


def _log(events: Callable[[str], list[tuple[str, ...]]], count: int) -> list[tuple[str, ...]]:
    _wait(lambda: len(events(_PRESS)) >= count)
    return events(_PRESS)


def test_clicks(do: Do, events: Callable[[str], list[tuple[str, ...]]]) -> None:
    do(Click(300, 301))
    do(Click(302, 303, "right"))
    do(Click(304, 305, count=2, modifiers=("shift",)))
    log = _log(events, 8)
    assert [(kind, x, y, button) for kind, x, y, _, button in log] == [
        ("ButtonPress", "300", "301", "1"), ("ButtonRelease", "300", "301", "1"),
        ("ButtonPress", "302", "303", "3"), ("ButtonRelease", "302", "303", "3"),
    ] + [("ButtonPress", "304", "305", "1"), ("ButtonRelease", "304", "305", "1")] * 2  # fmt: skip
    assert log[4][3] == "0x1"  # shift is held


def test_wheel_drag_and_holding(do: Do, events: Callable[[str], list[tuple[str, ...]]]) -> None:
    do(Scroll(400, 300, dy=2))
    do(Scroll(400, 300, dx=-1, dy=-1))
    assert [e[4] for e in _log(events, 8)[::2]] == ["5", "5", "4", "6"]
    do(Drag(((300, 300), (420, 300), (420, 420))))
    pressed, released = _log(events, 10)[8:]
    assert (pressed[1:3], released[1:3]) == (("300", "300"), ("420", "420"))
    moved = events(r"MotionNotify event.*?root:\((\d+),(\d+)\)")
    assert ("420", "300") in moved
    do(LongPress(350, 350, 200))
    do(Move(351, 352))
    do(MouseDown())
    do(MouseUp())
    assert len(_log(events, 14)) == 14


def test_a_new_lease_finds_nothing_held_down(
    do: Do, booted: Desktop, epoch: int, events: Callable[[str], list[tuple[str, ...]]]
) -> None:
    do(Move(300, 300))
    do(MouseDown())
    booted.fence(epoch + 1)
    assert [e[0] for e in _log(events, 2)] == ["ButtonPress", "ButtonRelease"]


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (Click(1280, 10), "outside the screen of 1280x720"),
        (Move(-1, 0), "outside"),
        (Drag(((1, 1), (1, 9999))), "outside"),
        (Scroll(1, 1, dy=5000), "notches"),
        (KeyDown("nosuchkey"), "nosuchkey"),
        (Type("a\x00b"), "U\\+0000"),
        (OpenApp("photoshop"), "terminal, files, editor, browser"),
    ],
)
def test_what_cannot_be_done_is_named(do: Do, action: Action, message: str) -> None:
    with pytest.raises(ActionFailed, match=message):
        do(action)


def test_apps_are_started_then_raised(booted: Desktop, do: Do, epoch: int) -> None:
    count = "xprop -root _NET_CLIENT_LIST | grep -o 0x | wc -l"

    def windows() -> int:
        return int(booted.shell(count, epoch=epoch, action_id=new_id()).output)

    before = windows()  # the panel is one
    do(OpenApp("Text Editor"))
    _wait(lambda: windows() == before + 1)
    do(OpenApp("terminal"))
    _wait(lambda: windows() == before + 2)
    do(OpenApp("editor"))
    active = "xprop -id $(xprop -root _NET_ACTIVE_WINDOW | grep -o '0x.*') WM_CLASS"
    _wait(lambda: "ousepad" in booted.shell(active, epoch=epoch, action_id=new_id()).output)
    assert windows() == before + 2
