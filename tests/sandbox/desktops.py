"""What tests of real desktops share: whether there can be any here, and fresh ids."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid

import pytest

from sandbox.provider import SandboxSpec
from sandbox.providers.qemu import template

needs_local = pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("bwrap", "Xvnc", "openbox")),
    reason="needs bubblewrap, tigervnc-standalone-server and openbox",
)

needs_headless_shell = pytest.mark.skipif(
    shutil.which("chromium-headless-shell") is None, reason="needs chromium-headless-shell"
)

needs_container = pytest.mark.skipif(
    os.geteuid() != 0
    or any(shutil.which(name) is None for name in ("podman", "runc", "vncpasswd")),
    reason="needs root, podman, runc and tigervnc-tools",
)


def skip_without_image() -> None:
    """Skip where podman is, but nobody has built the image yet: that takes minutes."""
    from sandbox.images import container

    if subprocess.run(["podman", "image", "exists", container.tag()], check=False).returncode:
        pytest.skip("needs the image: python -m sandbox.images build container")


def _machines() -> bool:
    """Whether machines can be forked at once: booting the first one may take minutes."""
    if shutil.which("qemu-system-x86_64") is None:
        return False
    return template.there(memory_mb=SandboxSpec("").memory_mb, cpus=1, shared={})


needs_qemu = pytest.mark.skipif(
    not _machines(),
    reason="needs qemu-system-x86, and for this guest: python -m sandbox.images build qemu",
)


def new_id() -> str:
    return uuid.uuid4().hex
