"""Which Python a computer has: a desktop need not have another one than its guest's."""

from __future__ import annotations

from collections.abc import Callable


def guest_python(shell: Callable[[str], str]) -> str:
    """Return the interpreter that runs the computer's guest; `shell` gives a command's output.

    The guest is the parent of every shell that it starts.
    """
    return shell("tr '\\0' '\\n' < /proc/$PPID/cmdline | head -n 1").strip() or "python3"
