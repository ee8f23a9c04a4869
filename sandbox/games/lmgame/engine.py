"""2048 as LMGame-Bench plays it: the environment of the package gymnasium-2048, by its keys.

The package is the extra "games" of this project; without it `missing()` says so.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from PIL import Image

PACKAGE = "gymnasium-2048"
KEYS = {"ArrowUp": 0, "ArrowRight": 1, "ArrowDown": 2, "ArrowLeft": 3}
WIDTH, HEIGHT = 400, 460

_DRAWING = threading.Lock()
"""pygame's fonts are for one thread at a time."""


class State(NamedTuple):
    """`board` holds the tiles row by row, 0 for none."""

    board: Sequence[Sequence[int]]
    score: int
    done: bool


def missing() -> str:
    """Return what to install, "" where nothing is missing."""
    try:
        version(PACKAGE)
    except PackageNotFoundError:
        return f"{PACKAGE} is not installed: pip install -e '.[games]'"
    return ""


class Engine:
    """One round. Its methods may be called from several threads."""

    def __init__(self, seed: int) -> None:
        environments = import_module("gymnasium_2048.envs")
        self._env: Any = environments.TwentyFortyEightEnv(render_mode="rgb_array")
        self._lock = threading.Lock()
        self._env.reset(seed=seed)
        self._done = False

    def press(self, key: str) -> None:
        """Make the move of a key; other keys, and keys after the end, do nothing."""
        with self._lock:
            if key in KEYS and not self._done:
                self._done = bool(self._env.step(KEYS[key])[2])

    def state(self) -> State:
        with self._lock:
            powers = self._env.board.tolist()
            board = [[2**power if power else 0 for power in row] for row in powers]
            return State(board, int(self._env.total_score), self._done)

    def picture(self) -> bytes:
        """Return what the environment draws, WIDTH x HEIGHT, as PNG."""
        with self._lock, _DRAWING:
            png = io.BytesIO()
            Image.fromarray(self._env.render()).save(png, "PNG")
            return png.getvalue()
