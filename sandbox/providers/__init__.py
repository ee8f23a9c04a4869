"""Every kind of computer that Tandem can start, by name."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from sandbox.provider import Provider, SandboxError

NAMES = ("local", "qemu", "container", "browser", "android", "kubernetes", "remote", "fake")


@cache
def load(name: str, *, state: Path | None = None) -> Provider:
    """Return the provider called `name`; `state` is its folder for what must outlive a process.

    The host that starts computers names the folder; connecting needs only the handle.
    Raises SandboxError naming the known providers.
    """
    if name == "local":
        from sandbox.providers.local import LocalProvider

        return LocalProvider(state or Path(tempfile.gettempdir(), "tandem-sandboxes"))
    if name == "container":
        from sandbox.providers.container.provider import ContainerProvider

        return ContainerProvider(state or Path(tempfile.gettempdir(), "tandem-containers"))
    if name == "kubernetes":
        try:
            from sandbox.providers.kubernetes.provider import KubernetesProvider
        except ModuleNotFoundError as error:
            raise SandboxError(
                f"provider kubernetes: {error}: pip install 'tandem[kubernetes]'"
            ) from error

        return KubernetesProvider(state or Path(tempfile.gettempdir(), "tandem-pods"))
    if name == "remote":
        from sandbox.providers.remote.provider import RemoteProvider

        return RemoteProvider(state or Path(tempfile.gettempdir(), "tandem-machines"))
    if name == "qemu":
        from sandbox.providers.qemu.provider import QemuProvider

        return QemuProvider(state or Path(tempfile.gettempdir(), "tandem-vms"))
    if name == "browser":
        from sandbox.providers.browser.provider import BrowserProvider

        return BrowserProvider(state or Path(tempfile.gettempdir(), "tandem-pages"))
    if name == "android":
        from sandbox.providers.android import AndroidProvider

        return AndroidProvider(state or Path(tempfile.gettempdir(), "tandem-phones", "sandboxes"))
    if name == "fake":
        from sandbox.providers.fake import FakeProvider

        return FakeProvider()
    raise SandboxError(
        f"no sandbox provider {name!r}; SANDBOX_PROVIDER is one of {', '.join(NAMES)}"
    )
