"""When a template of virtual machines has to be booted anew."""

from __future__ import annotations

import os
from pathlib import Path

from sandbox.providers.qemu import template


def test_pages_that_were_only_installed_again_need_no_new_template(tmp_path: Path) -> None:
    here, there = tmp_path / "here" / "pages", tmp_path / "there" / "pages"
    for folder in (here, there):
        folder.mkdir(parents=True)
        (folder / "index.html").write_text("a page")
    os.utime(there / "index.html", (1, 1))
    assert template._digest(here) == template._digest(there)
    (there / "index.html").write_text("b page")
    assert template._digest(here) != template._digest(there)
