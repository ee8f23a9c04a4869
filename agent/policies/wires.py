"""How vendors' endpoints are asked for tool calls, and where their answers have them.

One wire per API: OpenAI's responses, Anthropic's messages, Gemini's generateContent, and chat
completions for models that write their calls as JSON. Pure: bodies out, replies in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agent.dialects.frame import Frame
from agent.dialects.grammar import ParseError, quote

Call = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """One text and the pictures after it (base64 PNG, the current one last)."""

    model: str
    text: str
    pictures: Sequence[str]
    frame: Frame
    temperature: float
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said, and the calls that it wants in their order.

    `cut` says why the answer ended before its model was done, as its API names it; "" where it was.
    """

    text: str
    calls: tuple[Call, ...]
    cut: str = ""


class Wire(Protocol):
    """One API."""

    def path(self, model: str) -> str: ...

    def headers(self, token: str) -> dict[str, str]: ...

    def body(self, question: Question) -> dict[str, Any]: ...

    def reply(self, answer: Mapping[str, Any]) -> Reply:
        """Read an answer; raises ParseError where it has nothing of the kind."""
        ...


@dataclass(frozen=True, slots=True)
class Responses:
    """https://platform.openai.com/docs/api-reference/responses; `preview` is the first computer tool."""

    preview: bool = False

    def path(self, model: str) -> str:
        return "/v1/responses"

    def headers(self, token: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"} if token else {}

    def body(self, question: Question) -> dict[str, Any]:
        tool: dict[str, Any] = {"type": "computer"}
        if self.preview:
            size = {"display_width": question.frame.width, "display_height": question.frame.height}
            tool = {"type": "computer_use_preview", "environment": "linux", **size}
        images = [
            {"type": "input_image", "image_url": f"data:image/png;base64,{picture}"}
            for picture in question.pictures
        ]
        content = [{"type": "input_text", "text": question.text}, *images]
        return {
            "model": question.model,
            "input": [{"role": "user", "content": content}],
            "tools": [tool],
            "truncation": "auto",
            "max_output_tokens": question.max_tokens,
        }

    def reply(self, answer: Mapping[str, Any]) -> Reply:
        texts, calls = [], []
        for item in _items(answer, "output"):
            if item.get("type") == "computer_call":
                calls.append(item)
            for part in (*_items(item, "summary"), *_items(item, "content")):
                texts.append(str(part.get("text") or ""))
        return _reply(texts, calls, answer.get("status"), ("completed",))


@dataclass(frozen=True, slots=True)
class Messages:
    """https://docs.anthropic.com/en/api/messages; `version` is that of the computer tool."""

    version: str

    def path(self, model: str) -> str:
        return "/v1/messages"

    def headers(self, token: str) -> dict[str, str]:
        date = self.version.rpartition("_")[2]
        return {
            "x-api-key": token,
            "anthropic-version": "2023-06-01",
            "anthropic-beta": f"computer-use-{date[:4]}-{date[4:6]}-{date[6:]}",
        }

    def body(self, question: Question) -> dict[str, Any]:
        tool = {
            "type": f"computer_{self.version}",
            "name": "computer",
            "display_width_px": question.frame.width,
            "display_height_px": question.frame.height,
        }
        images = [
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": picture},
            }
            for picture in question.pictures
        ]
        content = [{"type": "text", "text": question.text}, *images]
        return {
            "model": question.model,
            "max_tokens": question.max_tokens,
            "temperature": min(question.temperature, 1.0),
            "tools": [tool],
            "messages": [{"role": "user", "content": content}],
        }

    def reply(self, answer: Mapping[str, Any]) -> Reply:
        blocks = _items(answer, "content")
        texts = [str(block.get("text") or block.get("thinking") or "") for block in blocks]
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        return _reply(texts, calls, answer.get("stop_reason"), ("end_turn", "tool_use"))


@dataclass(frozen=True, slots=True)
class Generate:
    """https://ai.google.dev/api/generate-content; `environment` is the computer_use tool's."""

    environment: str

    def path(self, model: str) -> str:
        return f"/v1beta/models/{model}:generateContent"

    def headers(self, token: str) -> dict[str, str]:
        return {"x-goog-api-key": token} if token else {}

    def body(self, question: Question) -> dict[str, Any]:
        images = [
            {"inline_data": {"mime_type": "image/png", "data": picture}}
            for picture in question.pictures
        ]
        return {
            "contents": [{"role": "user", "parts": [{"text": question.text}, *images]}],
            "tools": [{"computer_use": {"environment": self.environment}}],
            "generationConfig": {
                "temperature": question.temperature,
                "maxOutputTokens": question.max_tokens,
            },
        }

    def reply(self, answer: Mapping[str, Any]) -> Reply:
        first = next(iter(_items(answer, "candidates")), {})
        parts = _items(first.get("content") or {}, "parts")
        calls = [part["functionCall"] for part in parts if part.get("functionCall")]
        texts = [str(part.get("text") or "") for part in parts]
        return _reply(texts, calls, first.get("finishReason"), ("STOP",))


_BLOCK = re.compile(r"<tool_call>(.*?)(?:</tool_call>|$)|```(\w*)\n(.*?)(?:```|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Chat:
    """/v1/chat/completions: calls stand in `tool_calls`, or as JSON (or a script) in the text.

    `bare` dialects have no name around their values; `script` ones are code. In a dialect that
    `ends_in_words` no call says that the task is done.
    """

    bare: bool = False
    script: bool = False
    ends_in_words: bool = False

    def path(self, model: str) -> str:
        return "/v1/chat/completions"

    def headers(self, token: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"} if token else {}

    def body(self, question: Question) -> dict[str, Any]:
        images = [
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
            for picture in question.pictures
        ]
        content = [{"type": "text", "text": question.text}, *images]
        return {
            "model": question.model,
            "messages": [{"role": "user", "content": content}],
            "max_tokens": question.max_tokens,
            "temperature": question.temperature,
        }

    def reply(self, answer: Mapping[str, Any]) -> Reply:
        choice = next(iter(_items(answer, "choices")), {})
        message = choice.get("message") or {}
        text, calls = str(message.get("content") or ""), list[Call]()
        for call in _items(message, "tool_calls"):
            function = call.get("function") or {}
            calls.append(self._bared(function) if self.bare or self.script else function)
        if not calls and ("{" in text or not self.ends_in_words):
            text, calls = self._written(text)
        return _reply([text], calls, choice.get("finish_reason"), ("stop", "tool_calls"))

    def _bared(self, function: Mapping[str, Any]) -> Call:
        arguments = function.get("arguments") or {}
        return _object(arguments) if isinstance(arguments, str) else arguments

    def _written(self, text: str) -> tuple[str, list[Call]]:
        blocks = list(_BLOCK.finditer(text))
        thought = text[: blocks[0].start()] if blocks else text
        if self.script and blocks:
            return thought, [{"code": (match[3] or match[1] or "").strip()} for match in blocks]
        if blocks:
            return thought, [_object(match[1] or match[3] or "") for match in blocks]
        start = text.find("{")
        if start < 0:
            raise ParseError(f"no call in {quote(text)}")
        return text[:start], [_object(text[start:])]


def _object(text: str) -> Call:
    try:
        value, _ = json.JSONDecoder().raw_decode(text.strip())
    except (ValueError, RecursionError) as error:
        raise ParseError(f"the call is no JSON: {error}: {quote(text)}") from None
    if not isinstance(value, Mapping):
        raise ParseError(f"a call is an object, not {quote(text)}")
    return value


def _items(record: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = record.get(key)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _reply(
    texts: Sequence[str], calls: Sequence[Call], ended: object, whole: Sequence[str]
) -> Reply:
    """Return a reply; `ended` is how its API says that it ended, `whole` the ways that are good."""
    cut = "" if ended is None or ended in whole else str(ended)
    return Reply("\n".join(filter(None, texts)).strip(), tuple(calls), cut)


_WIRES: dict[str, Wire] = {
    "openai": Responses(),
    "openai-preview": Responses(preview=True),
    "gemini": Generate("ENVIRONMENT_DESKTOP"),
    "gemini-browser": Generate("ENVIRONMENT_BROWSER"),
    "osworld": Chat(bare=True),
    "android": Chat(bare=True),
    "pyautogui": Chat(script=True),
    "playwright-mcp": Chat(ends_in_words=True),
}


def wire_of(dialect: str) -> Wire:
    """Return the API that the models of a tool dialect are asked by."""
    if dialect.startswith("anthropic-"):
        return Messages(dialect.removeprefix("anthropic-"))
    return _WIRES.get(dialect, Chat())
