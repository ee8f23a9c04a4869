"""A whole reply of a pixel-pointing model, in whichever of the family's forms it comes."""

from __future__ import annotations

from agent.dialects.frame import Coordinates, Frame
from agent.dialects.grammar import (
    Parsed,
    ParseError,
    read_calls,
    read_xml_calls,
    split_reply,
)
from agent.dialects.verbs import read_action
from trajectory import Finish


def read_reply(text: str, frame: Frame, coordinates: Coordinates) -> Parsed:
    """Return the thought and the actions of `text`; raises ParseError naming what can't be read.

    Only the first call has to be readable: what a model wants after it is a hint, and a broken
    hint ends the list.
    """
    thought, body, kind = split_reply(text)
    if kind == "answer":
        return Parsed(thought, Finish(body), body)
    calls = read_xml_calls(body) if kind == "xml" else read_calls(body)
    first, raw = calls[0]
    actions = list(read_action(first, frame, coordinates))
    try:
        for call, _ in calls[1:]:
            actions += read_action(call, frame, coordinates)
    except ParseError:
        pass  # the first action stands; the next reply will say again what comes after it
    return Parsed(thought, actions[0], raw, tuple(actions[1:]))
