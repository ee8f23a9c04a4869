"""Why a computer can't be recorded."""

from __future__ import annotations


class CaptureError(Exception):
    """A part of the capture does not work here; the message names it and the way out."""
