"""Events of a recording to steps: what was done, and what was on the screen before it."""

from recorder.reduce.steps import steps, write_steps

__all__ = ["steps", "write_steps"]
