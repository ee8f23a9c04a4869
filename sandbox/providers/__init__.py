"""Every kind of computer that Tandem can start, by name."""

from __future__ import annotations

from pathlib import Path

from sandbox.provider import Provider, SandboxError

NAMES = ("local", "fake")


def load(name: str, *, state: Path) -> Provider:
    """Return the provider called `name`; `state` is its folder for what must outlive a process.

    Raises SandboxError naming the known ones.
    """
    if name == "local":
        from sandbox.providers.local import LocalProvider

        return LocalProvider(state)
    if name == "fake":
        from sandbox.providers.fake import FakeProvider

        return FakeProvider()
    raise SandboxError(f"no sandbox provider {name!r}; SANDBOX_PROVIDER is one of {', '.join(NAMES)}")
