"""A model that answers one question in words: greedy, no dialect, no action."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from agent.policies.endpoint import ask, with_pictures
from agent.policy import PolicyRefused
from agent.render import Message


class Said(NamedTuple):
    """What a model wrote, and which one it was."""

    text: str
    version: str


class Chat(Protocol):
    """Answers messages of the OpenAI shape (pictures by sha256) at temperature 0."""

    def say(self, messages: Sequence[Message]) -> Said:
        """Return the answer; raises PolicyError where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """Asks an OpenAI-compatible endpoint; `pictures` opens a PNG by its sha256."""

    url: str
    model: str
    pictures: Callable[[str], bytes]
    token: str = ""
    max_tokens: int = 400
    timeout_s: float = 120.0

    def say(self, messages: Sequence[Message]) -> Said:
        """Return the one answer. Raises PolicyUnreachable, PolicyBusy, PolicyRefused."""
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [with_pictures(_plain(message), self.pictures) for message in messages],
            "max_tokens": self.max_tokens,
            "temperature": 0,
            "n": 1,
        }
        answer = ask(self.url, body, token=self.token, timeout_s=self.timeout_s)
        try:
            text = answer["choices"][0]["message"]["content"] or ""
        except (KeyError, IndexError, TypeError) as error:
            raise PolicyRefused(f"{self.url} answered without a choice") from error
        return Said(str(text), str(answer.get("model") or self.model))


def _plain(message: Message) -> Message:
    """Return a message of text alone as a string: servers of text models take nothing else."""
    content = message["content"]
    if isinstance(content, str) or any(part["type"] != "text" for part in content):
        return message
    return {**message, "content": "\n\n".join(part["text"] for part in content)}
