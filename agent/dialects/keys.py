"""Key combinations as models write them: 'ctrl c', 'ctrl+c', 'ctrl+-', 'Page_Down'."""

from __future__ import annotations

from agent.dialects.grammar import LossyConversion, ParseError, quote
from trajectory.keys import canonical_key


def read_keys(text: str) -> tuple[str, ...]:
    """Return the canonical keys of a combination; raises ParseError naming the unknown key.

    The last separator may itself be the key: 'ctrl+-' and 'ctrl +' are two keys each, and so is
    'ctrl + c', where it stands between two.
    """
    words = text.split()
    inner = [word for word in words[1:-1] if word != "+"]
    keys = [key for word in [*words[:1], *inner, *words[1:][-1:]] for key in _word(word)]
    if not keys:
        raise ParseError(f"no key in {quote(text)}")
    return tuple(keys)


def read_key(text: str) -> str:
    """Return one canonical key; raises ParseError if `text` is not exactly one."""
    keys = read_keys(text)
    if len(keys) != 1:
        raise ParseError(f"{quote(text)} is {len(keys)} keys, one is wanted")
    return keys[0]


def write_keys(keys: tuple[str, ...]) -> str:
    """Return keys joined by spaces; raises LossyConversion if they don't read back the same."""
    text = " ".join(keys)
    try:
        same = read_keys(text) == keys
    except ParseError:
        same = False
    if not same:
        raise LossyConversion(f"the keys {keys} don't survive being written as {text!r}")
    return text


def _word(word: str) -> list[str]:
    try:
        return [canonical_key(word)]
    except ValueError as error:
        for separator in "+-":
            head, found, last = word[:-1].rpartition(separator)
            if word.endswith(separator):  # the key is the separator: 'ctrl++'
                return [*_word(head or word[:-1].rstrip(separator)), separator]
            if found:
                return [*_word(head), *_word(last + word[-1])]
        raise ParseError(str(error)) from None
