"""How many tokens a prompt has: asked of who serves the model, else estimated from above."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.dialects.frame import smart_resize
from agent.policies import endpoint
from agent.render import Message
from trajectory import Observation

PER_MESSAGE = 16
"""What a chat template puts around a message, from above; the first one may add a system text."""
TEMPLATE = 64
PATCH = 28
"""Pixels of a picture token's side in the Qwen2.5-VL family; Qwen3-VL's are larger, so fewer."""

_WITHOUT: set[str] = set()
"""The endpoints that are known to count nothing."""

_PIECES = re.compile(r"[A-Za-z]+|[^A-Za-z\s]|[\n\t]")


def estimate(messages: Sequence[Message]) -> int:
    """Return more than the tokens of the texts in `messages` for tokenizers of the usual kind.

    A word has a token for two letters here, digits, signs and newlines are one each, and a character
    beyond ASCII is as many as it has bytes: about twice what prose and markup have. Only runs of
    random consonants have more. Pictures count nothing.
    """
    texts = 0
    for message in messages:
        content = message["content"]
        parts = [content] if isinstance(content, str) else [p.get("text", "") for p in content]
        texts += PER_MESSAGE + sum(_tokens(part) for part in parts)
    return TEMPLATE + texts


def _tokens(text: str) -> int:
    total = text.count("  ")  # runs of blanks
    for piece in _PIECES.findall(text):
        total += -(-len(piece) // 2) if piece[0].isascii() else len(piece.encode())
    return total


def picture_tokens(observation: Observation) -> int:
    """Return at least the tokens of one screenshot in the Qwen-VL family, its two marks included."""
    height, width = smart_resize(observation.height, observation.width, factor=PATCH)
    return height * width // PATCH**2 + 2


def asked(
    url: str, model: str, messages: Sequence[Message], *, token: str, timeout_s: float
) -> int:
    """Return what `url`/tokenize counts; 0 where the endpoint has no such thing.

    Raises what `endpoint.post` raises.
    """
    if url in _WITHOUT:
        return 0
    body = {"model": model, "messages": list(messages), "add_generation_prompt": True}
    try:
        answer = endpoint.post(url, "/tokenize", body, token=token, timeout_s=timeout_s)
        return int(answer["count"])
    except (endpoint.NoSuchPath, KeyError, TypeError, ValueError):
        _WITHOUT.add(url)
        return 0
