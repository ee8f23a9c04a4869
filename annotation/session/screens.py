"""Looking at a desktop, and telling whether it still shows what somebody decided on."""

from __future__ import annotations

import io
from collections.abc import Iterable

from PIL import Image, ImageChops

from sandbox.provider import Frame
from trajectory import Action, Drag, Observation, Point, target

# Half the side of the window around a target, in pixels: a button, not its neighbours.
REACH = 32
# Grey levels below which a pixel counts as the same: antialiasing and hover tints.
TOLERANCE = 24
# Share of the window that may differ: a caret (2 x 30 of 64 x 64 pixels) may, a word may not.
SHARE = 0.025


def observation(frame: Frame, screenshot: str, *, tool_output: str = "") -> Observation:
    """Return the observation that a frame is, its picture stored as `screenshot`."""
    return Observation(
        screenshot=screenshot,
        width=frame.width,
        height=frame.height,
        elements=frame.elements,
        tool_output=tool_output,
        url=frame.url,
        captured_at=frame.captured_at,
    )


def places(action: Action) -> tuple[Point, ...]:
    """Return the places of the screen that `action` depends on; () where it has none."""
    if isinstance(action, Drag):
        return (action.path[0], action.path[-1])
    place = target(action)
    return () if place is None else (place,)


def changed(before: bytes, now: bytes, around: Iterable[Point]) -> Point | None:
    """Return the first place around which two PNG pictures differ; None if none does.

    A blinking caret and other small or faint differences don't count. Pictures of different sizes
    differ everywhere.
    """
    wanted = tuple(around)
    if not wanted or before == now:
        return None
    with Image.open(io.BytesIO(before)) as old, Image.open(io.BytesIO(now)) as new:
        if old.size != new.size:
            return wanted[0]
        for x, y in wanted:
            box = (
                max(x - REACH, 0),
                max(y - REACH, 0),
                min(x + REACH, old.width),
                min(y + REACH, old.height),
            )
            if box[0] >= box[2] or box[1] >= box[3]:
                continue  # outside the screen: the guest refuses it by name
            difference = ImageChops.difference(
                old.crop(box).convert("RGB"), new.crop(box).convert("RGB")
            )
            strongest = ImageChops.lighter(
                ImageChops.lighter(difference.getchannel(0), difference.getchannel(1)),
                difference.getchannel(2),
            )
            different = sum(strongest.histogram()[TOLERANCE:])
            if different > SHARE * strongest.width * strongest.height:
                return (x, y)
    return None
