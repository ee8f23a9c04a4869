"""What tests of real desktops share: whether there can be any here, and fresh ids."""

from __future__ import annotations

import shutil
import uuid

import pytest

needs_local = pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("bwrap", "Xvnc", "openbox")),
    reason="needs bubblewrap, tigervnc-standalone-server and openbox",
)


def new_id() -> str:
    return uuid.uuid4().hex
