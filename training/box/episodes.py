"""MiniWoB episodes in a headless Chromium: one kept page, real mouse and keyboard input.

The same elements, prompts and verdicts as on a desktop, at a hundred times its pace; what it leaves
out are the window around the page and the screen's picture.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from guest.page import Page, PageError
from sandbox import miniwob
from sandbox.miniwob import Judged
from trajectory import (
    Action,
    Actor,
    Click,
    Hotkey,
    Observation,
    Outcome,
    Step,
    Trajectory,
    Type,
    Wait,
    is_terminal,
)

WIDTH, HEIGHT = 1280, 720
NO_PICTURE = "0" * 64
"""The name of a picture that was not taken: rows for element-reading models carry none."""

START_S = 10.0

Decide: TypeAlias = Callable[[str, Sequence[Step], Observation], tuple[str, Action, bool]]
"""(instruction, steps so far, observation) -> (thought, action, whether to learn from it)."""


class Unsupported(Exception):
    """The headless page has no such input; the message names the action."""


class Game:
    """One page that plays episode after episode without being loaded again."""

    def __init__(self, port: int, page: str, *, picture: Callable[[bytes], str] | None = None):
        self.page, self.name, self.picture = Page(port, timeout=10.0), page, picture
        self._origin, self._ratio = (0.0, 0.0), 1.0
        self.page.navigate(miniwob.url(page, folder=miniwob.assets()))

    def start(self, seed: int) -> str:
        """Start the episode of `seed` and return its instruction; PageError if it does not start."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            said = self.page.evaluate(miniwob.start_script(seed))
            if isinstance(said, str):
                return said
            time.sleep(0.02)
        raise PageError(f"{self.name} did not start within {START_S:g} s")

    def observe(self) -> Observation:
        """Return what can be seen now; waits for the frame in which the last input took effect."""
        self.page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))")
        view = self.page.view()
        self._origin, self._ratio = view.origin, view.ratio
        return Observation(
            screenshot=self.picture(self._shot()) if self.picture else NO_PICTURE,
            width=WIDTH,
            height=HEIGHT,
            elements=view.elements,
            url=view.url.rpartition("/")[2],
            captured_at=time.time(),
        )

    def perform(self, action: Action) -> None:
        """Do `action` with real input events; raises Unsupported."""
        match action:
            case Click(x=x, y=y, button="left", count=count, modifiers=()):
                self._mouse("mouseMoved", x, y, 0)
                for n in range(1, count + 1):
                    self._mouse("mousePressed", x, y, n)
                    self._mouse("mouseReleased", x, y, n)
            case Type(text=text, submit=False):
                self.page.call("Input.insertText", {"text": text})
            case Hotkey(keys=("ctrl", "a")):
                key = {"key": "a", "code": "KeyA", "windowsVirtualKeyCode": 65, "modifiers": 2}
                self.page.call(
                    "Input.dispatchKeyEvent",
                    {"type": "rawKeyDown", "commands": ["selectAll"], **key},
                )
                self.page.call("Input.dispatchKeyEvent", {"type": "keyUp", **key})
            case Wait():
                pass
            case _ if not is_terminal(action):
                raise Unsupported(f"a headless page can't do {action}")

    def judge(self) -> Judged:
        return miniwob.verdict(self.page.evaluate(miniwob.state_script()))

    def _mouse(self, kind: str, x: int, y: int, count: int) -> None:
        self.page.call(
            "Input.dispatchMouseEvent",
            {
                "type": kind,
                "x": (x - self._origin[0]) / self._ratio,
                "y": (y - self._origin[1]) / self._ratio,
                "button": "left" if count else "none",
                "clickCount": count,
            },
        )

    def _shot(self) -> bytes:
        return base64.b64decode(self.page.call("Page.captureScreenshot")["data"])


def play(
    game: Game, seed: int, decide: Decide, *, actor: Actor, max_steps: int = 16, version: str = ""
) -> Trajectory:
    """Play one episode to its end and return it with its verdict as the reward."""
    instruction = game.start(seed)
    steps: list[Step] = []
    outcome = Outcome.OUT_OF_STEPS
    while len(steps) < max_steps:
        observation = game.observe()
        thought, action, learn = decide(instruction, steps, observation)
        steps.append(
            Step(
                index=len(steps),
                observation=observation,
                thought=thought,
                action=action,
                actor=actor,
                model_version=version,
                trainable=learn,
            )
        )
        if is_terminal(action):
            outcome = Outcome.FINISHED
            break
        game.perform(action)
    return Trajectory(
        id=f"miniwob-{game.name}-{seed}",
        task=f"miniwob/{game.name}",
        instruction=instruction,
        steps=tuple(steps),
        outcome=outcome,
        reward=game.judge().reward,
        source="miniwob",
        metadata={"page": game.name, "seed": str(seed)},
    )


def picture_folder(folder: Path) -> Callable[[bytes], str]:
    """Return a function that keeps a PNG under its sha256 in `folder` and returns that."""

    def keep(png: bytes) -> str:
        digest = hashlib.sha256(png).hexdigest()
        place = folder / "blobs" / digest[:2] / digest
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(png)
        return digest

    return keep
