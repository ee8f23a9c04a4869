"""MCP tools that use the mouse and the keyboard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from trajectory import (
    Action,
    Button,
    Click,
    Drag,
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
    Type,
    Wait,
)
from trajectory.keys import canonical_key

if TYPE_CHECKING:
    from sandbox.mcp.server import Computer

Pixel = Annotated[int, Field(ge=0, le=16_384)]
Notches = Annotated[int, Field(ge=-100, le=100)]
Count = Annotated[int, Field(ge=1, le=3)]
Seconds = Annotated[float, Field(ge=0, le=60)]
Text = Annotated[str, Field(max_length=20_000)]
Place = Annotated[list[Pixel], Field(min_length=2, max_length=2)]
Path = Annotated[list[Place], Field(min_length=2, max_length=1000)]


class HandTools:
    """Each is one canonical action, done once."""

    def __init__(self, computer: Computer) -> None:
        self._computer = computer

    def tools(self) -> Sequence[Callable[..., Any]]:
        return (
            *(self.click, self.move, self.mouse_down, self.mouse_up, self.drag, self.scroll),
            *(self.long_press, self.type_, self.key, self.key_down, self.key_up, self.wait),
            *(self.navigate, self.navigate_back, self.open_app),
        )

    def click(
        self,
        x: Pixel,
        y: Pixel,
        button: Button = "left",
        count: Count = 1,
        modifiers: Sequence[str] = (),
    ) -> str:
        """Click at (x, y); `count` 2 is a double click; `modifiers` such as "ctrl" are held."""
        held = tuple(canonical_key(name) for name in modifiers)
        return self._do(Click(x, y, button, count, held))

    def move(self, x: Pixel, y: Pixel) -> str:
        """Move the pointer without pressing anything."""
        return self._do(Move(x, y))

    def mouse_down(self, button: Button = "left") -> str:
        """Press a mouse button where the pointer is and keep it down."""
        return self._do(MouseDown(button))

    def mouse_up(self, button: Button = "left") -> str:
        """Let go of a mouse button."""
        return self._do(MouseUp(button))

    def drag(self, path: Path, button: Button = "left") -> str:
        """Press at the first [x, y] of `path`, follow it, let go at the last."""
        return self._do(Drag(tuple((point[0], point[1]) for point in path), button))

    def scroll(self, x: Pixel, y: Pixel, dx: Notches = 0, dy: Notches = 0) -> str:
        """Turn the wheel over (x, y), in notches; positive is right and down."""
        return self._do(Scroll(x, y, dx, dy))

    def long_press(self, x: Pixel, y: Pixel, seconds: Seconds = 1.0) -> str:
        """Hold the left button, or a finger, on (x, y)."""
        return self._do(LongPress(x, y, round(seconds * 1000)))

    def type_(self, text: Text, submit: bool = False) -> str:
        """Enter text where the focus is; `submit` presses Enter afterwards."""
        return self._do(Type(text, submit))

    def key(self, keys: Annotated[str, Field(max_length=100)]) -> str:
        """Press a key or a combination and let go: "enter", "ctrl+s", "alt+f4", "ctrl++"."""
        return self._do(Hotkey(read_keys(keys)))

    def key_down(self, key: str) -> str:
        """Press one key and keep it down."""
        return self._do(KeyDown(canonical_key(key)))

    def key_up(self, key: str) -> str:
        """Let go of one key."""
        return self._do(KeyUp(canonical_key(key)))

    def wait(self, seconds: Seconds) -> str:
        """Do nothing for a while."""
        return self._do(Wait(round(seconds * 1000)))

    def navigate(self, url: Text) -> str:
        """Open an address in the browser in front."""
        return self._do(Navigate(url))

    def navigate_back(self) -> str:
        """Go one page back in the browser in front."""
        return self._do(NavigateBack())

    def open_app(self, name: Text) -> str:
        """Start an application, or raise its window: "browser", "terminal", "files", "editor"."""
        return self._do(OpenApp(name))

    def _do(self, action: Action) -> str:
        self._computer.perform(action)
        return "done"


def read_keys(text: str) -> tuple[str, ...]:
    """Return the canonical keys of 'ctrl+c'; the last '+' may be a key. Raises ValueError."""
    last = ["+"] if text.endswith("+") else []
    head = text[:-1].removesuffix("+") if last else text
    return tuple(canonical_key(word) for word in [*(head.split("+") if head else []), *last])
