"""Whether two short answers say the same, by rules alone: numbers, dates, case, articles."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import date

_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" if name != "may" else "may" for name in _MONTHS)
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})\.?,? (\d{{4}})\b")
_MONTH_FIRST = re.compile(rf"\b({_MONTH})\.? (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}})\b")
_YEAR_FIRST = re.compile(r"\b(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})\b")
_NUMBER = re.compile(r"(?<![\w.])[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w])")
_BARE_POINT = re.compile(r"(?<![\w.])\.(?=\d)")
_ARTICLE = re.compile(r"^(?:an?|the) (?=\S)|\bthe (?=\S)")


def normalised(text: str) -> str:
    """Return `text` in the form in which answers are compared.

    Case, accents' encoding, articles, punctuation and spaces don't count; numbers and dates are written
    in one way. A date whose day and month could be exchanged (03/04/2024) stays as it is.

    >>> normalised("The  Eiffel Tower.") == normalised("eiffel tower")
    True
    >>> normalised("March 3rd, 2024"), normalised("3 Mar 2024"), normalised("2024/3/3")
    ('2024-03-03', '2024-03-03', '2024-03-03')
    >>> normalised("1,234.50"), normalised("+1234.5"), normalised("-0.0")
    ('1234.5', '1234.5', '0')
    """
    text = unicodedata.normalize("NFKC", text).casefold().replace("\u2212", "-")
    text = " ".join(text.split())
    text = _BARE_POINT.sub("0.", text)
    text = _DAY_FIRST.sub(lambda m: _date(m[3], m[2], m[1]) or m[0], text)
    text = _MONTH_FIRST.sub(lambda m: _date(m[3], m[1], m[2]) or m[0], text)
    text = _YEAR_FIRST.sub(lambda m: _date(m[1], m[2], m[3]) or m[0], text)
    words = []
    for word in text.split():
        bare = word.strip(".,;:!?\"'()[]{}\u201c\u201d\u2018\u2019`")
        words.append(bare if re.fullmatch(r"\d{4}-\d{2}-\d{2}", bare) else _plain(bare))
    return _ARTICLE.sub("", " ".join(" ".join(words).split()))


def matches(answer: str, references: Sequence[str]) -> bool:
    """Whether `answer` says the same as one of `references`; an empty answer never does."""
    found = normalised(answer)
    return bool(found) and any(found == normalised(reference) for reference in references)


def _plain(word: str) -> str:
    return _NUMBER.sub(lambda m: _number(m[0]), word).rstrip(".")


def _number(text: str) -> str:
    whole, _, fraction = text.replace(",", "").lstrip("+").partition(".")
    sign, digits = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
    digits, fraction = digits.lstrip("0") or "0", fraction.rstrip("0")
    if digits == "0" and not fraction:
        return "0"
    return f"{sign}{digits}{'.' + fraction if fraction else ''}"


def _date(year: str, month: str, day: str) -> str:
    """Return an ISO date, empty where there is no such day."""
    number = int(month) if month.isdigit() else 1 + [m[:3] for m in _MONTHS].index(month[:3])
    try:
        return date(int(year), number, int(day)).isoformat()
    except ValueError:
        return ""
