"""General data: conversations from elsewhere, in text only, that are mixed into CT and SFT.

One JSON object per line: {"messages": [{"role", "content"}, ...]} that ends with the assistant, or
the same with the assistant's last words apart as "target". A message of the assistant may say "loss":
then the ones that say true are learnt, else only the last one is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from training.data.rows import Row
from training.errors import Refused

ROLES = ("system", "user", "assistant")


class BrokenConversation(Refused):
    """A line of a file of general data can't be used; the message begins with the file and line."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages that end with the assistant; `learnt` are the places of those that get loss."""

    messages: tuple[dict[str, str], ...]
    learnt: tuple[int, ...]

    def to_line(self) -> str:
        """Return the line that is kept; the same conversation gives the same bytes."""
        last = (len(self.messages) - 1,)
        messages: list[dict[str, Any]] = [dict(message) for message in self.messages]
        if self.learnt != last:
            for at, message in enumerate(messages):
                if message["role"] == "assistant":
                    message["loss"] = at in self.learnt
        return json.dumps({"messages": messages}, ensure_ascii=False) + "\n"


def read(lines: Iterable[bytes], *, file: str) -> Iterator[Conversation]:
    """Yield the conversations of a file, empty lines aside; raises BrokenConversation."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield _conversation(json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8")))
        except UnicodeDecodeError as error:
            raise _broken(file, number, f"byte {error.start + 1} is not UTF-8") from None
        except json.JSONDecodeError as error:
            raise _broken(file, number, f"no JSON: {error.msg} at column {error.colno}") from None
        except RecursionError:
            raise _broken(file, number, "nested too deeply") from None
        except ValueError as error:
            raise _broken(file, number, str(error)) from None


def rows(conversations: Iterable[Conversation], *, name: str, whole: bool = False) -> Iterator[Row]:
    """Yield one row per reply that is learnt; `whole`: one per conversation, with loss on all text."""
    for line, one in enumerate(conversations):
        last = len(one.messages) - 1
        for at in (last,) if whole else one.learnt:
            row_id = f"{name}/{line}" if at == last else f"{name}/{line}/{at}"
            messages = [dict(message) for message in one.messages[:at]]
            target = one.messages[at]["content"]
            yield Row(row_id, messages, target, [], loss="all" if whole else True)


def _conversation(record: object) -> Conversation:
    if not isinstance(record, dict):
        raise ValueError("a line must be an object with messages")
    given = record.get("messages")
    if not isinstance(given, list) or not given:
        raise ValueError("messages must be a list that is not empty")
    target = record.get("target")
    if target is not None:
        given = [*given, {"role": "assistant", "content": target}]
        if any(isinstance(one, dict) and "loss" in one for one in given[:-1]):
            given[-1]["loss"] = True
    messages = tuple(_message(at, one) for at, one in enumerate(given, start=1))
    if messages[-1]["role"] != "assistant":
        raise ValueError("the last message must be the assistant's, or give it as target")
    if not any(message["role"] == "user" for message in messages[:-1]):
        raise ValueError("no message of the user comes before the assistant's last words")
    if not any("loss" in one for one in given):
        return Conversation(messages, (len(messages) - 1,))
    learnt = tuple(at for at, one in enumerate(given) if one.get("loss"))
    if not learnt:
        raise ValueError("no message has loss: leave the flags out to learn the last one")
    if learnt[0] == 0:
        raise ValueError("message 1 can't be learnt: nothing comes before it")
    return Conversation(messages, learnt)


def _message(number: int, given: object) -> dict[str, str]:
    if not isinstance(given, dict):
        raise ValueError(f"message {number} must be an object with role and content")
    role, content, loss = given.get("role"), given.get("content"), given.get("loss", False)
    if role not in ROLES:
        raise ValueError(f"message {number}: the role {role!r} is not one of {', '.join(ROLES)}")
    if role == "system" and number > 1:
        raise ValueError(f"message {number}: only the first message may be the system's")
    if not isinstance(content, str) or not content.strip():
        raise ValueError(f"message {number}: content must be a text (no pictures) and not empty")
    if not isinstance(loss, bool):
        raise ValueError(f"message {number}: loss must be true or false")
    if loss and role != "assistant":
        raise ValueError(f"message {number}: only the assistant's messages can have loss")
    return {"role": role, "content": content}


def _broken(file: str, line: int, why: str) -> BrokenConversation:
    return BrokenConversation(f"{file}, line {line}: {why}")
