"""Whether an answer in words is the known one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normal(text: str) -> str:
    """Return a text without case, accents, punctuation, articles and double blanks.

    The steps are SQuAD's (Rajpurkar et al., 2016), with accents besides.
    """
    plain = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    words = re.sub(r"(?<=\d),(?=\d{3})", "", plain)
    return " ".join(_ARTICLES.sub(" ", re.sub(r"[^\w.]+", " ", words)).replace(".", "").split())


def right(answer: str, accepted: Iterable[str]) -> bool:
    """Whether `answer` is one of `accepted`, after both were made normal; never for an empty one."""
    said = normal(answer)
    return bool(said) and said in {normal(known) for known in accepted}
