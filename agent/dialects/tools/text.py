"""Text where a trailing line break submits: one Enter afterwards, never two."""

from __future__ import annotations

from agent.dialects.grammar import LossyConversion
from trajectory import Type


def read_type(text: str) -> Type:
    """Return the action of a `type` call whose text may end with the line break that submits."""
    submit = text.endswith("\n")
    return Type(text[:-1] if submit else text, submit=submit)


def write_type(action: Type) -> str:
    """Return the text of a `type` call; raises LossyConversion if it would read as a submit."""
    if action.text.endswith("\n") and not action.submit:
        raise LossyConversion(f"type can't say {action.text!r} without a submit")
    return action.text + "\n" if action.submit else action.text
