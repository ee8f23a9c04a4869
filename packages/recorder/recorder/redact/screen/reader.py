"""What reads the text on pictures. Nothing of it is loaded before a picture is to be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from recorder.redact.redactions import Box, RedactionError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]  # (height, width, 3), red, green, blue

INSTALL = "pip install 'tandem-recorder[ocr]'"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text, or a part of one that stands alone; `box` in pixels of the picture."""

    text: str
    box: Box


@dataclass(frozen=True, slots=True)
class Read:
    """A picture that was read."""

    pixels: Pixels
    lines: tuple[Line, ...]


class Reader(Protocol):
    """What reads pictures; `name` changes when the same picture may read otherwise."""

    name: str

    def read(self, pixels: Pixels, before: Read | None) -> tuple[Line, ...]: ...


def reader() -> Reader:
    """Return the reader of this installation; raises RedactionError where none is installed."""
    try:
        from recorder.redact.screen.rapid import rapid_reader

        return rapid_reader()
    except ModuleNotFoundError:
        raise RedactionError(f"nothing that reads them is installed: {INSTALL}") from None
    except (ImportError, OSError) as error:  # OpenCV may miss a library of the system
        raise RedactionError(f"what reads them can't be loaded: {error}. {INSTALL}") from None
