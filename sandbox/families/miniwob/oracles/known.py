"""The twenty pages whose oracle reads the list of elements, in the words that a shipped model knows."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox import miniwob
from sandbox.families.miniwob import pages
from sandbox.provider import Desktop
from trajectory import Action, Step


class ElementOracle:
    """Decides from what can be named on the screen; see `sandbox.miniwob.oracle`."""

    def __init__(self, page: str) -> None:
        self.page = page

    def decide(self, desktop: Desktop, steps: Sequence[Step]) -> tuple[str, Action]:
        elements = desktop.observe(elements=True).elements or ()
        state = desktop.evaluate(pages.state_script())
        said = str(state["utterance"]) if isinstance(state, dict) else ""
        return miniwob.oracle(self.page, said, elements, miniwob.past(steps))
