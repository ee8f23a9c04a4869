"""The one form in which a judging model answers, and reading it: strictly, or not at all.

    Reason: one or two sentences.
    Evidence: step 3: the page says "Order placed".
    Verdict 1f9c02ab: success

One Reason, one or more Evidence, one Verdict, in this order and nothing else. The verdict carries the
token of the question: text that came out of a page can't know it, so copying that is no verdict.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from agent.rewards.protocol import Evidence

MAX_REPLY = 8000
"""A longer reply is not read."""

_REASON = re.compile(r"Reason: *(\S.*)")
_EVIDENCE = re.compile(r"Evidence: *step (\d{1,6}): *(\S.*)", re.IGNORECASE)


class Unreadable(ValueError):
    """A reply is not in the form asked for; the message says where it is not."""


class Reply(NamedTuple):
    """What a judging model said; `word` is one of the words that the question allowed."""

    reason: str
    evidence: tuple[Evidence, ...]
    word: str


def read(raw: str, *, token: str, words: tuple[str, ...], steps: int | None = None) -> Reply:
    """Read a reply; raises Unreadable.

    `steps` is how many steps the episode has: evidence must name one of them, and there must be some.
    None: the question asked for no evidence, and there must be none.
    """
    if len(raw) > MAX_REPLY:
        raise Unreadable(f"the reply has {len(raw)} characters, {MAX_REPLY} are read")
    lines = [line.strip() for line in raw.strip().splitlines() if line.strip()]
    if len(lines) < 2:
        raise Unreadable("the reply lacks lines: Reason, Evidence and Verdict are asked for")
    reason = _REASON.fullmatch(lines[0])
    if reason is None:
        raise Unreadable(f"the first line is no Reason: {lines[0][:80]!r}")
    verdict = re.fullmatch(rf"Verdict {re.escape(token)}: *({'|'.join(words)})\.?", lines[-1])
    if verdict is None:
        raise Unreadable(
            f"the last line is no Verdict with this question's token: {lines[-1][:80]!r}"
        )
    evidence = tuple(_evidence(line, steps) for line in lines[1:-1])
    if steps is not None and not evidence:
        raise Unreadable("no evidence is given")
    return Reply(reason[1], evidence, verdict[1])


def _evidence(line: str, steps: int | None) -> Evidence:
    found = _EVIDENCE.fullmatch(line)
    if found is None or steps is None:
        raise Unreadable(f"a line between Reason and Verdict is no evidence: {line[:80]!r}")
    number = int(found[1])
    if not 1 <= number <= steps:
        raise Unreadable(f"evidence names step {number}, the episode has {steps}")
    return Evidence(number, found[2])
