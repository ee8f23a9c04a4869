"""Dialects of tool calls: JSON objects instead of text, to and from the canonical actions.

One call may be several actions (a click with a place of its own moves first) and one action several
calls. What has no exact form on the other side raises LossyConversion; nothing is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from agent.dialects.frame import Frame
from agent.dialects.grammar import DialectError
from agent.dialects.tools.android import Android
from agent.dialects.tools.anthropic import Anthropic
from agent.dialects.tools.gemini import Gemini
from agent.dialects.tools.gemini_browser import GeminiBrowser
from agent.dialects.tools.openai import OpenAI
from agent.dialects.tools.osworld import Computer13
from agent.dialects.tools.playwright import Playwright
from agent.dialects.tools.pyautogui import Pyautogui
from agent.dialects.tools.qwen import Qwen
from agent.dialects.tools.state import State, joined
from trajectory import Action, Move

__all__ = ["NAMES", "State", "ToolDialect", "joined", "load", "read_all", "write_all"]

Call = Mapping[str, Any]


class ToolDialect(Protocol):
    """One way of writing actions as tool calls."""

    @property
    def name(self) -> str: ...

    def read(self, call: Call, frame: Frame, state: State) -> tuple[Action, ...]:
        """Return what `call` asks for; raises ParseError, LossyConversion.

        `state` is that before the call; the caller carries it on with `State.after`.
        """
        ...

    def write(self, action: Action, frame: Frame, state: State) -> tuple[Call, ...]:
        """Return the calls that do `action`; raises LossyConversion naming what would be lost."""
        ...


_DIALECTS: dict[str, ToolDialect] = {
    dialect.name: dialect
    for dialect in (
        OpenAI(),
        OpenAI("openai-preview", modifiers=False),
        Anthropic("20241022"),
        Anthropic("20250124"),
        Anthropic("20251124"),
        Anthropic("toolset_20260801"),
        Computer13(),
        Pyautogui(),
        Gemini(),
        GeminiBrowser(),
        Qwen(),
        Qwen("qwen2.5", coordinates="resized"),
        Android(),
        Playwright(),
    )
}
NAMES = tuple(_DIALECTS)


def load(name: str) -> ToolDialect:
    """Return the tool dialect called `name` with its usual settings; raises ValueError."""
    if name not in _DIALECTS:
        raise ValueError(f"unknown tool dialect {name!r}; known: {', '.join(NAMES)}")
    return _DIALECTS[name]


def read_all(
    dialect: ToolDialect, calls: Iterable[Call], frame: Frame, state: State | None = None
) -> tuple[Action, ...]:
    """Return the actions of `calls` in order, one after the other; raises what `read` raises."""
    state, actions = state or State(), list[Action]()
    for call in calls:
        new = dialect.read(call, frame, state)
        state = state.after(*new)
        actions += new
    return joined(actions)


def write_all(
    dialect: ToolDialect,
    actions: Sequence[Action],
    frame: Frame,
    state: State | None = None,
) -> tuple[Call, ...]:
    """Return the calls of `actions` in order; raises LossyConversion.

    A Move is left to the call after it where that one says the place itself.
    """
    state, calls = state or State(), list[Call]()
    at = 0
    while at < len(actions):
        together = actions[at : at + 2]
        written = _in_one(dialect, together, frame, state)
        if written is None:
            together = actions[at : at + 1]
            written = dialect.write(together[0], frame, state)
        calls += written
        state = state.after(*together)
        at += len(together)
    return tuple(calls)


def _in_one(
    dialect: ToolDialect, pair: Sequence[Action], frame: Frame, state: State
) -> tuple[Call, ...] | None:
    if len(pair) != 2 or not isinstance(pair[0], Move):
        return None
    try:
        calls = dialect.write(pair[1], frame, state.after(pair[0]))
        if len(calls) == 1 and dialect.read(calls[0], frame, state) == tuple(pair):
            return calls
    except DialectError:
        pass  # the two are written one by one
    return None
