"""Headless browsers that cost little: one session, one page, one synchronous observation a step."""

from sandbox.providers.browser.checkpoint import Checkpoint
from sandbox.providers.browser.fleet import Fleet, FleetFull
from sandbox.providers.browser.page import BrowserPage, StepResult
from sandbox.providers.browser.spec import BrowserMissing, PageSpec

__all__ = [
    "BrowserMissing",
    "BrowserPage",
    "Checkpoint",
    "Fleet",
    "FleetFull",
    "PageSpec",
    "StepResult",
]
