"""A computer behind its guest's socket: a screen alone, or a whole desktop."""

from sandbox.desktop.screen import GuestScreen
from sandbox.desktop.tools import GuestDesktop

__all__ = ["GuestDesktop", "GuestScreen"]
