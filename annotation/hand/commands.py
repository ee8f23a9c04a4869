"""Actions as people type them: `click(412, 305)`, `type("hello", submit)`, `hotkey(ctrl, c)`.

`static/js/commands.js` reads the same language for completion; this parser is the one that counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from trajectory import (
    ACTION_NAMES,
    ACTION_TYPES,
    BUTTONS,
    Action,
    AskUser,
    Button,
    Click,
    Drag,
    Fail,
    Finish,
    FormatError,
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
    action_from_dict,
)
from trajectory.keys import MODIFIERS, canonical_key

COUNTS = {"double": 2, "triple": 3}
DIRECTIONS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
MAX_COORDINATE = 100_000

_CALL = re.compile(r"\s*([A-Za-z_]+)\s*\((.*)\)\s*", re.DOTALL)
_NOTCHES = re.compile(r"\d{1,4}")
_TOKEN = re.compile(r"""\s*(?:("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(,)|([^\s,"']+))""", re.DOTALL)


class CommandError(ValueError):
    """A typed action can't be read; the message says what to write instead."""


@dataclass(frozen=True, slots=True)
class _Arg:
    """One argument between commas: its words, or one quoted text."""

    words: tuple[str, ...]
    quoted: bool = False

    def __str__(self) -> str:
        return " ".join(self.words)


def parse(text: str, *, frame: tuple[int, int] | None = None) -> Action:
    """Return the action that `text` writes; points must lie inside `frame` (width, height).

    Raises CommandError with a message for the person who typed it.
    """
    call = _CALL.fullmatch(text)
    if call is None:
        raise CommandError("write an action as name(arguments), such as click(412, 305)")
    name = call[1].lower()
    if name not in ACTION_TYPES:
        near = get_close_matches(name, ACTION_TYPES, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(ACTION_TYPES)}"
        raise CommandError(f"there is no action {name!r}{hint}")
    action = _READERS[name](_Args(name, _split(call[2])))
    if frame is not None:
        _check_inside(action, frame)
    return action


def format(action: Action) -> str:
    """Return the text that `parse` reads back as the same action."""
    name = ACTION_NAMES[type(action)]
    match action:
        case Click():
            words = _button(action.button)
            words += [w for w, n in COUNTS.items() if n == action.count]
            if action.count not in (1, 2, 3):
                words.append(f"count {action.count}")
            if action.modifiers:
                words.append("hold " + "+".join(action.modifiers))
            parts = [str(action.x), str(action.y), *words]
        case Move(x=x, y=y):
            parts = [str(x), str(y)]
        case MouseDown(button=button) | MouseUp(button=button):
            parts = _button(button)
        case Drag(path=path, button=button):
            parts = [str(n) for point in path for n in point] + _button(button)
        case Scroll(x=x, y=y, dx=dx, dy=dy):
            turns = [f"{'down' if dy >= 0 else 'up'} {abs(dy)}"] if dy or not dx else []
            turns += [f"{'right' if dx > 0 else 'left'} {abs(dx)}"] if dx else []
            parts = [str(x), str(y), *turns]
        case LongPress(x=x, y=y, duration_ms=ms):
            parts = [str(x), str(y)] + ([str(ms)] if ms != 1000 else [])
        case KeyDown(key=key) | KeyUp(key=key):
            parts = [_key_text(key)]
        case Hotkey(keys=keys):
            parts = [_key_text(key) for key in keys]
        case Type(text=text, submit=submit):
            parts = [_quote(text)] + (["submit"] if submit else [])
        case Wait(duration_ms=ms):
            parts = [str(ms)]
        case Navigate(url=value) | OpenApp(name=value) | AskUser(question=value):
            parts = [_quote(value)]
        case Shell(command=command, timeout_ms=ms):
            parts = [_quote(command)] + ([str(ms)] if ms != 30_000 else [])
        case Finish(answer=value) | Fail(reason=value):
            parts = [_quote(value)] if value else []
        case NavigateBack():
            parts = []
    return f"{name}({', '.join(parts)})"


def describe(record: object) -> str:
    """Return a recorded action as text; one that can't be read any more is named by its type."""
    try:
        return format(action_from_dict(record))
    except FormatError:
        return f"{record.get('type', '?')}(…)" if isinstance(record, dict) else "no action"


# -- reading -----------------------------------------------------------------------------------


class _Args:
    """The arguments of one action, taken from the left."""

    def __init__(self, name: str, args: list[_Arg]) -> None:
        self.name, self._left = name, args

    def take(self) -> _Arg | None:
        return self._left.pop(0) if self._left else None

    def has_number(self) -> bool:
        return bool(self._left) and _is_number(self._left[0])

    def number(self, what: str, default: int | None = None) -> int:
        if not self._left and default is not None:
            return default
        arg = self.take()
        if arg is None or not _is_number(arg):
            found = f", not {str(arg)!r}" if arg is not None else ""
            raise CommandError(f"{self.name} needs {what} as a whole number{found}")
        value = int(str(arg))
        if not 0 <= value <= MAX_COORDINATE * 100:
            raise CommandError(f"{what} of {self.name} can't be {value}")
        return value

    def point(self) -> tuple[int, int]:
        return self.number("x"), self.number("y")

    def text(self, what: str, default: str | None = None) -> str:
        if not self._left and default is not None:
            return default
        arg = self.take()
        if arg is None:
            raise CommandError(f'{self.name} needs {what} in quotes: {self.name}("...")')
        if not arg.quoted:
            raise CommandError(f'put {what} in quotes: {self.name}("{arg}")')
        return arg.words[0]

    def end(self) -> None:
        if self._left:
            raise CommandError(f"{self.name} does not know what to do with {str(self._left[0])!r}")


def _split(text: str) -> list[_Arg]:
    args: list[_Arg] = []
    words: list[str] = []
    quoted, after_comma, at = False, False, 0
    text = text.rstrip()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise CommandError("a quoted text is not closed")
        at = token.end()
        string, comma, word = token.groups()
        if comma:
            if not words:
                raise CommandError("there is nothing before a comma")
            args.append(_Arg(tuple(words), quoted))
            words, quoted = [], False
        elif string is not None:
            if words:
                raise CommandError(f"a comma is missing before {string}")
            words, quoted = [_unquote(string)], True
        else:
            if quoted:
                raise CommandError(f"a comma is missing before {word}")
            words.append(word)
        after_comma = bool(comma)
    if after_comma:
        raise CommandError("there is nothing after the last comma")
    return [*args, _Arg(tuple(words), quoted)] if words else args


def _unquote(string: str) -> str:
    body = string[1:-1]
    if string[0] == "'":
        body = body.replace("\\'", "'").replace('"', '\\"')
    # A line break typed into the box is a line break of the text.
    body = body.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")
    try:
        said = str(json.loads(f'"{body}"'))
    except ValueError:
        raise CommandError(f"{string} has a bad backslash; write \\\\ for one") from None
    if "\0" in said or any("\ud800" <= letter <= "\udfff" for letter in said):
        raise CommandError(f"{string} writes something that is no character")
    return said


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _is_number(arg: _Arg) -> bool:
    return not arg.quoted and re.fullmatch(r"-?\d{1,9}", str(arg)) is not None


def _button(button: Button) -> list[str]:
    return [] if button == "left" else [button]


def _key_text(key: str) -> str:
    return key if re.fullmatch(r"\w+", key) else _quote(key)


def _keys(arg: _Arg) -> list[str]:
    """Return the keys of `ctrl`, `ctrl+c`, `ctrl c` or `"+"`."""
    names = (
        arg.words
        if arg.quoted
        else tuple(
            key for word in arg.words for key in ([word] if word == "+" else word.split("+"))
        )
    )
    try:
        return [canonical_key(name) for name in names]
    except ValueError as error:
        raise CommandError(
            f"{error}; write a character, or a word such as enter or pageup"
        ) from None


def _read_click(args: _Args) -> Action:
    x, y = args.point()
    button: Button = "left"
    count = 1
    modifiers: tuple[str, ...] = ()
    while (arg := args.take()) is not None:
        match arg.words:
            case (word,) if word in BUTTONS and not arg.quoted:
                button = word
            case (word,) if word in COUNTS:
                count = COUNTS[word]
            case ("count", n) if n.isdecimal() and 0 < int(n) < 10:
                count = int(n)
            case ("hold", *keys) if keys:
                modifiers = tuple(_keys(_Arg(tuple(keys))))
                if wrong := [key for key in modifiers if key not in MODIFIERS]:
                    raise CommandError(f"hold takes {', '.join(MODIFIERS)}, not {wrong[0]}")
            case _:
                raise CommandError(
                    f"click does not know {str(arg)!r}; after x, y come "
                    "a button (right, middle), double, triple, or hold ctrl+shift"
                )
    return Click(x, y, button=button, count=count, modifiers=modifiers)


def _read_button(args: _Args) -> Button:
    arg = args.take()
    for button in BUTTONS:
        if arg is None or str(arg) == button:
            return "left" if arg is None else button
    raise CommandError(f"{args.name} takes a button: {', '.join(BUTTONS)}")


def _read_drag(args: _Args) -> Action:
    path = []
    while args.has_number():
        path.append(args.point())
    if len(path) < 2:
        raise CommandError("drag needs two points: drag(x1, y1, x2, y2)")
    return Drag(tuple(path), button=_read_button(args))


def _read_scroll(args: _Args) -> Action:
    x, y = args.point()
    dx = dy = 0
    turned = False
    while (arg := args.take()) is not None:
        word, *rest = arg.words
        if word not in DIRECTIONS or len(rest) > 1 or (rest and not _NOTCHES.fullmatch(rest[0])):
            raise CommandError("scroll takes a direction and notches: scroll(640, 300, down 3)")
        notches = int(rest[0]) if rest else 3
        dx += DIRECTIONS[word][0] * notches
        dy += DIRECTIONS[word][1] * notches
        turned = True
    if not turned:
        raise CommandError("say which way to scroll: scroll(640, 300, down 3)")
    return Scroll(x, y, dx=dx, dy=dy)


def _read_hotkey(args: _Args) -> Action:
    keys: list[str] = []
    while (arg := args.take()) is not None:
        keys += _keys(arg)
    if not keys:
        raise CommandError("hotkey needs at least one key: hotkey(ctrl, c)")
    return Hotkey(tuple(keys))


def _read_key(args: _Args) -> str:
    arg = args.take()
    keys = _keys(arg) if arg is not None else []
    if len(keys) != 1:
        raise CommandError(f"{args.name} takes one key: {args.name}(shift)")
    return keys[0]


def _read_type(args: _Args) -> Action:
    text, flag = args.text("the text"), args.take()
    if flag is not None and str(flag) != "submit":
        raise CommandError(f"after the text comes submit or nothing, not {str(flag)!r}")
    return Type(text, submit=flag is not None)


def _all(read: Callable[[_Args], Action]) -> Callable[[_Args], Action]:
    def reader(args: _Args) -> Action:
        action = read(args)
        args.end()
        return action

    return reader


_READERS: dict[str, Callable[[_Args], Action]] = {
    "click": _all(_read_click),
    "move": _all(lambda a: Move(*a.point())),
    "mouse_down": _all(lambda a: MouseDown(_read_button(a))),
    "mouse_up": _all(lambda a: MouseUp(_read_button(a))),
    "drag": _all(_read_drag),
    "scroll": _all(_read_scroll),
    "long_press": _all(
        lambda a: LongPress(*a.point(), duration_ms=a.number("the milliseconds", 1000))
    ),
    "key_down": _all(lambda a: KeyDown(_read_key(a))),
    "key_up": _all(lambda a: KeyUp(_read_key(a))),
    "hotkey": _all(_read_hotkey),
    "type": _all(_read_type),
    "wait": _all(lambda a: Wait(a.number("the milliseconds", 1000))),
    "navigate": _all(lambda a: Navigate(a.text("the address"))),
    "navigate_back": _all(lambda a: NavigateBack()),
    "open_app": _all(lambda a: OpenApp(a.text("the name"))),
    "shell": _all(
        lambda a: Shell(a.text("the command"), timeout_ms=a.number("the time limit", 30_000))
    ),
    "finish": _all(lambda a: Finish(a.text("the answer", ""))),
    "fail": _all(lambda a: Fail(a.text("the reason", ""))),
    "ask_user": _all(lambda a: AskUser(a.text("the question", ""))),
}


def _check_inside(action: Action, frame: tuple[int, int]) -> None:
    width, height = frame
    match action:
        case Click(x=x, y=y) | Move(x=x, y=y) | Scroll(x=x, y=y) | LongPress(x=x, y=y):
            points: tuple[tuple[int, int], ...] = ((x, y),)
        case Drag(path=path):
            points = path
        case _:
            points = ()
    for x, y in points:
        if x >= width or y >= height:
            raise CommandError(f"({x}, {y}) lies outside the screen, which is {width} × {height}")
