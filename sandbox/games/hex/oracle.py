"""Places pieces as `sandbox.games.placing` does."""

from __future__ import annotations

from sandbox.games.placing import decide

__all__ = ["decide"]
