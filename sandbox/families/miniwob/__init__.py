"""MiniWoB++: 128 small web tasks, with an oracle for 20 of them."""

from sandbox.families.miniwob.family import FAMILY

__all__ = ["FAMILY"]
