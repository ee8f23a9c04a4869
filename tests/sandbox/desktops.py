"""What tests of real desktops share: whether there can be any here, and fresh ids."""

from __future__ import annotations

import shutil
import uuid

import pytest

from sandbox.images import qemu as qemu_image

needs_local = pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("bwrap", "Xvnc", "openbox")),
    reason="needs bubblewrap, tigervnc-standalone-server and openbox",
)

needs_headless_shell = pytest.mark.skipif(
    shutil.which("chromium-headless-shell") is None, reason="needs chromium-headless-shell"
)

needs_qemu = pytest.mark.skipif(
    shutil.which("qemu-system-x86_64") is None or qemu_image.built() is None,
    reason="needs qemu-system-x86 and its image: python -m sandbox.images build qemu",
)


def new_id() -> str:
    return uuid.uuid4().hex
