"""The rules of the house that a machine can check."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = (
    "config", "training", "annotation", "agent", "sandbox", "packages", "benchmarks", "experiments",
    "tests",
)  # fmt: skip
LIMIT = 400
# A trainer is read top to bottom; a test file is a list that one searches.
LIMITS = {"training/trainers/": 500, "tests/": 450}


def sources() -> list[Path]:
    found = [path for folder in OURS for path in (ROOT / folder).rglob("*.py")]
    scripts = [*(ROOT / "static/js").rglob("*.js"), *(ROOT / "packages").rglob("*.js")]
    return [path for path in [*found, *scripts] if "migrations" not in path.parts]


def test_imports_point_down():
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_web_loads_no_torch():
    code = (
        "import sys, config.asgi; "
        "print([name for name in ('torch', 'transformers', 'accelerate') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_no_file_is_long():
    long = []
    for path in sources():
        name = path.relative_to(ROOT).as_posix()
        lines = len(path.read_text().splitlines())
        limit = next((n for folder, n in LIMITS.items() if name.startswith(folder)), LIMIT)
        if lines > limit:
            long.append(f"{name}: {lines}")
    assert not long, "split by noun: " + ", ".join(long)


def test_no_module_is_a_drawer():
    drawers = {"utils", "util", "helpers", "common", "managers", "manager", "misc", "services"}
    assert not [path for path in sources() if path.stem in drawers and "tests" not in path.parts]


def test_only_env_reads_the_environment_of_django():
    """Handing the whole environment on to a child is fine; reading a variable is config.env's."""
    allowed = {"env.py", "install.py"}
    readers = [
        path.relative_to(ROOT).as_posix()
        for folder in ("config", "annotation", "training", "sandbox")
        for path in (ROOT / folder).glob("*.py")
        if path.name not in allowed
        and re.search(r"environ\.get|environ\[|getenv", path.read_text())
    ]
    assert not readers, "ask config.env or settings: " + ", ".join(readers)


@pytest.mark.parametrize(
    "lock", ["requirements.lock", "requirements-web.lock", "requirements-data.lock"]
)
def test_a_lock_names_no_registry_and_no_torch(lock):
    text = (ROOT / lock).read_text()
    assert "://" not in text
    assert not re.search(r"^(torch|triton|nvidia[-\w]*)==", text, re.MULTILINE)
    for block in re.split(r"\n(?=[a-z0-9])", text.strip()):
        assert "--hash=sha256:" in block, block[:80]


def test_every_wanted_package_is_locked():
    """A dependency that is added without `make lock` fails here, not on a newcomer's machine."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = list(project["dependencies"])
    for role in project["optional-dependencies"].values():
        wanted += role
    locked = {
        match[1].lower().replace("_", "-")
        for match in re.finditer(
            r"^([A-Za-z0-9_.-]+)==", (ROOT / "requirements.lock").read_text(), re.M
        )
    }
    names = {re.split(r"[\[<>=! ]", entry)[0].lower().replace("_", "-") for entry in wanted}
    assert names - locked <= {"torch"}
