"""The recorder's small window: what it shows, and where one presses on it."""

from recorder.capture.window.face import BUTTONS, Face, draw, outline, pressed_at, size

__all__ = ["BUTTONS", "Face", "draw", "outline", "pressed_at", "size"]
