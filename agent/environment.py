"""A leased desktop as the loop sees it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from agent.loop import ActionRefused, EnvironmentFailure
from sandbox.provider import ActionFailed, Desktop, SandboxError
from trajectory import Action, Observation


@dataclass(slots=True)
class DesktopEnvironment:
    """Acts under the lease's `epoch`; `store` keeps a PNG and returns its sha256.

    `settle` waits until the screen is still; a page that is stepped frame by frame needs no waiting.
    """

    desktop: Desktop
    epoch: int
    store: Callable[[bytes], str]
    elements: bool = True
    settle: bool = True
    output: str = ""

    def observe(self) -> Observation:
        """Return what is on the screen, once it is still; raises EnvironmentFailure."""
        try:
            if self.settle:
                self.desktop.settle()
            frame = self.desktop.observe(elements=self.elements)
        except SandboxError as error:
            raise EnvironmentFailure(f"the desktop could not be observed: {error}") from error
        return Observation(
            screenshot=self.store(frame.png),
            width=frame.width,
            height=frame.height,
            elements=frame.elements,
            tool_output=self.output,
            url=frame.url,
            captured_at=frame.captured_at,
        )

    def act(self, action: Action) -> None:
        """Do `action` once; a tool's output comes with the next observation."""
        self.output = ""
        try:
            result = self.desktop.perform(action, epoch=self.epoch, action_id=uuid.uuid4().hex)
        except ActionFailed as error:
            raise ActionRefused(str(error)) from error
        except SandboxError as error:
            raise EnvironmentFailure(f"{type(error).__name__}: {error}") from error
        self.output = result.output
