"""What every dialect shares: taking a reply apart into a thought and calls like name(key='value').

Nothing here evaluates text: the argument reader is a scanner for the literals that models write.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from trajectory import Action


class DialectError(ValueError):
    """A text and an action don't meet."""


class ParseError(DialectError):
    """A reply can't be read; the message quotes what."""


class LossyConversion(DialectError):
    """An action has no exact form in a dialect; the message says what would be lost."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """One reply: its thought, its first action, and the actions that it wants after that."""

    thought: str
    action: Action
    raw_action: str
    more: tuple[Action, ...] = ()


@dataclass(slots=True)
class Call:
    """One function call as it was written; `positional` are values without a name."""

    name: str
    arguments: dict[str, str] = field(default_factory=dict)
    positional: list[str] = field(default_factory=list)

    def take(self, *names: str) -> str | None:
        """Return the argument under the first of `names` that is there, else None."""
        return next((self.arguments[n] for n in names if n in self.arguments), None)


# -- the reply -------------------------------------------------------------------------------------

_ACTION_LINE = re.compile(r"^[ \t>*]*Action\s*[:：][ \t]*\**", re.MULTILINE)
_ACTION_INLINE = re.compile(r"\bAction\s*[:：]\s*(?=\w+\s*\()")
_THOUGHT = re.compile(r"^\s*(?:\*\*)?Thought\s*[:：]\s*(?:\*\*)?\s*")
_TAGS = re.compile(r"</?(?:think\w*|Thought|computer_env|gui_env|Output)>")
_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|$)", re.DOTALL)
_XML = re.compile(r"<(?:\w+:)?tool_call\w*>|<function[= ]")


def split_reply(text: str) -> tuple[str, str, str]:
    """Return (thought, actions, kind) of a reply; kind is "calls", "xml" or "answer".

    Reads Thought / Action blocks with either colon, Reflection and Action_Summary parts, <think>
    blocks, <computer_env> wrappers, <answer> and XML tool calls. Raises ParseError without an action.
    """
    if (match := _XML.search(text)) and not _in_a_call(text, match.start()):
        return _thought(text[: match.start()]), text[match.start() :].strip(), "xml"
    if (match := _ANSWER.search(text)) and not _in_a_call(text, match.start()):
        return _thought(text[: match.start()]), match.group(1).strip(), "answer"
    # The last one that starts a line: a thought may talk about an "Action:".
    found = list(_ACTION_LINE.finditer(text)) or list(_ACTION_INLINE.finditer(text))
    if not found:
        raise ParseError(f'no "Action:" in {quote(text)}')
    last = found[-1]
    return _thought(text[: last.start()]), text[last.end() :].strip(), "calls"


def _in_a_call(text: str, at: int) -> bool:
    """Whether `at` lies in an argument of the calls before it: who types a tag says no such thing."""
    found = [match.end() for match in _ACTION_LINE.finditer(text, 0, at)]
    found = found or [match.end() for match in _ACTION_INLINE.finditer(text, 0, at)]
    place = found[-1] if found else at
    while (match := _NAME.match(text, place)) and match.end() <= at:
        try:
            _, place = _read_arguments(Call(match.group(1)), text, match.end())
        except ParseError:
            return False
        if at < place:
            return True
    return False


def _thought(head: str) -> str:
    return _THOUGHT.sub("", _TAGS.sub("", head).strip()).strip()


def quote(text: str, limit: int = 120) -> str:
    """Return `text` quoted for a message, cut in the middle beyond `limit` characters."""
    text = text.strip()
    return repr(text if len(text) <= limit else f"{text[: limit // 2]} … {text[-limit // 2 :]}")


# -- calls -----------------------------------------------------------------------------------------

_NAME = re.compile(r"[\s;`*]*([A-Za-z_]\w*)\s*\(")
_KEY = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)\s*")
_BARE = re.compile(r"[^,()\[\]'\"]+")
# A quote inside a text that nobody escaped is common; the closing one is followed by the next
# argument or by the end of the call.
_CLOSES = re.compile(r"\s*(?:\)|$|,\s*[A-Za-z_]\w*\s*=|,\s*['\"\d(\[])")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "'": "'", '"': '"', "\\": "\\"}


def read_calls(text: str) -> list[tuple[Call, str]]:
    """Return the calls at the start of `text`, each with the text it was read from.

    What follows the last call is left alone (end tokens, comments). Raises ParseError if there is
    no call at all or if one ends early.
    """
    calls: list[tuple[Call, str]] = []
    at = 0
    while match := _NAME.match(text, at):
        call, end = _read_arguments(Call(match.group(1)), text, match.end())
        calls.append((call, text[match.start(1) : end]))
        at = end
    if not calls:
        raise ParseError(f"no call like name(...) in {quote(text)}")
    return calls


def _read_arguments(call: Call, text: str, at: int) -> tuple[Call, int]:
    while True:
        at = _skip(text, at)
        if at >= len(text):
            raise ParseError(f"the call ends early: {quote(call.name + '(' + text[-80:])}")
        if text[at] == ")":
            return call, at + 1
        if text[at] == ",":
            at += 1
            continue
        key = _KEY.match(text, at)
        value, at = _read_value(text, key.end() if key else at)
        if key is None:
            call.positional.append(value)
        elif key.group(1) in call.arguments:
            raise ParseError(f"{call.name} has {key.group(1)} twice in {quote(text)}")
        else:
            call.arguments[key.group(1)] = value


def _read_value(text: str, at: int) -> tuple[str, int]:
    opening = text[at : at + 1]
    if opening in ("'", '"'):
        return _read_string(text, at + 1, opening)
    if opening in ("(", "["):
        end = text.find(")" if opening == "(" else "]", at)
        if end < 0:
            raise ParseError(f"{opening} is never closed in {quote(text[at:])}")
        return text[at : end + 1], end + 1
    match = _BARE.match(text, at)
    if match is None:
        raise ParseError(f"an argument can't be read at {quote(text[at:])}")
    return match.group().strip(), match.end()


def _read_string(text: str, at: int, opening: str) -> tuple[str, int]:
    start, out = at, []
    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            out.append(_ESCAPES.get(text[at + 1], char + text[at + 1]))
            at += 2
        elif char == opening and _CLOSES.match(text, at + 1):
            return "".join(out), at + 1
        else:
            out.append(char)
            at += 1
    raise ParseError(f"a text is never closed: {quote(opening + text[start:])}")


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def write_call(name: str, **arguments: str | int) -> str:
    """Return name(key='value', number=3) with texts escaped as `read_calls` reads them."""
    parts = [
        f"{key}={value}" if isinstance(value, int) else f"{key}='{escape(value)}'"
        for key, value in arguments.items()
    ]
    return f"{name}({', '.join(parts)})"


def escape(text: str) -> str:
    """Return `text` for between single quotes: one line, quotes and backslashes escaped once."""
    for char, code in (
        ("\\", "\\\\"),
        ("'", "\\'"),
        ("\n", "\\n"),
        ("\t", "\\t"),
        ("\r", "\\r"),
    ):
        text = text.replace(char, code)
    return text


# -- XML tool calls --------------------------------------------------------------------------------

_FUNCTION = re.compile(
    r"<function(?:=|\s+name=\")(\w+)\"?\s*>(.*?)(?:</function>|(?=<function[= ])|$)",
    re.DOTALL,
)
_PARAMETER = re.compile(r"<parameter(?:=|\s+name=\")(\w+)\"?[^>]*>(.*?)</parameter>", re.DOTALL)


def read_xml_calls(text: str) -> list[tuple[Call, str]]:
    """Return the calls of <function=NAME><parameter=KEY>VALUE</parameter></function> blocks.

    Also reads the name="..." attribute form. Values are taken as they are, without unescaping.
    """
    calls = [
        (Call(match.group(1), dict(_PARAMETER.findall(match.group(2)))), match.group())
        for match in _FUNCTION.finditer(text)
    ]
    if not calls:
        raise ParseError(f"no <function=...> in {quote(text)}")
    return calls
