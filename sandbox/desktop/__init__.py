"""A computer behind its guest's socket. Every provider with a guest uses one of these two."""

from __future__ import annotations

from sandbox.desktop.screen import GuestScreen


class GuestDesktop(GuestScreen):
    """A whole desktop: the screen, and its programs, files and terminals."""


__all__ = ["GuestDesktop", "GuestScreen"]
