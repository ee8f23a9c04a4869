"""The page on security names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"\b(test_\w+\.py)::(test_\w+)")


def test_every_test_that_the_page_on_security_names_is_there() -> None:
    named = NAMED.findall((ROOT / "docs" / "security.md").read_text())
    assert len(named) > 40
    text: dict[str, str] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        text[path.name] = text.get(path.name, "") + path.read_text()
    missing = [
        f"{file}::{name}" for file, name in named if f"def {name}(" not in text.get(file, "")
    ]
    assert not missing
