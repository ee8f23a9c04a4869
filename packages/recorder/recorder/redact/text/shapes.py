"""Secrets by how they are introduced, and by how they look."""

from __future__ import annotations

import re
from itertools import pairwise

_SAID = re.compile(
    r"(?<![A-Za-z])(?:pass(?:w[o0]rd|wd|phrase|code)?|pwd|secret|token|api[ _-]?key|access[ _-]?key"
    r"|private[ _-]?key|pin)(?:_[\w-]*)?[\"']?\s*(?:\bis\b|=|:)+\s*[\"']?(\S+)",
    re.I,
)
_LONG = re.compile(r"(?<![\w./-])[\w+=-]{16,}(?![\w./-])")
_BASE64 = re.compile(r"(?<![\w/+=-])[A-Za-z0-9/+]{38,44}(?![\w/+-])")
_LOWER = re.compile(r"(?<![\w./-])[a-z0-9]{24,64}(?![\w./-])")
_HEX = re.compile(r"[0-9a-f]{20,}|[0-9A-F]{32,}")
_HASH = re.compile(r"(?:sha\d{1,3}|md5|blake2b)[-:=]?$", re.I)


def said(text: str) -> list[tuple[int, int]]:
    """Return where a text gives a secret after its name: "password is x", "api_key = x"."""
    return [m.span(1) for m in _SAID.finditer(text) if m[1].strip("\"',.;:[](){}<>")]


def tokens(text: str) -> list[tuple[int, int]]:
    """Return where a text has something that a machine has drawn, not a person or a compiler named.

    A hash in hexadecimal is none: a commit, a digest and a uuid are shown all day and open nothing.
    """
    found = [
        m.span() for m in _LONG.finditer(text)
        if _has(rest := _HEX.sub("", m[0]), r"\d", "[a-z]", "[A-Z]") and len(rest) >= 16
        and jumbled(rest) and not _is_digest(text, m)
    ]  # fmt: skip
    found += [
        m.span() for m in _BASE64.finditer(text)
        if _has(m[0], r"\d", "[a-z]", "[A-Z]") and changes(m[0]) >= 8
        and not _HASH.search(text[: m.start()])
    ]  # fmt: skip
    found += [
        m.span() for m in _LOWER.finditer(text)
        if _has(rest := _HEX.sub("", m[0]), "[g-z]", r"\d") and len(rest) >= 20
        and changes(rest) >= len(rest) // 3
    ]  # fmt: skip
    return found


def jumbled(word: str) -> bool:
    """Whether letters and digits change as often as by chance: `HelloWorld2024Report` do not."""
    return changes(word) >= max(5, len(word) // 5)


def changes(word: str) -> int:
    """Count the changes between small letters, capitals and digits; a word's one capital is none."""
    shape = re.sub(r"[A-Z](?=[a-z]{2})", "a", word)
    kinds = ["0" if c.isdigit() else "A" if c.isupper() else "a" for c in shape if c.isalnum()]
    return sum(a != b for a, b in pairwise(kinds))


def _has(text: str, *patterns: str) -> bool:
    return all(re.search(pattern, text) for pattern in patterns)


def _is_digest(text: str, match: re.Match[str]) -> bool:
    return bool(_HASH.search(text[: match.start()]) or re.match(r"sha\d{1,3}[-=]", match[0], re.I))
