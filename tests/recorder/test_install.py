"""The recorder stands alone: two wheels in an empty environment, no Django and no torch with them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOOK = """
import json, sys, importlib.metadata as m
import recorder.cli, recorder.commands.record
print(json.dumps({"installed": sorted(d.name.lower() for d in m.distributions()),
                  "loaded": sorted(n.partition(".")[0] for n in sys.modules)}))
"""


def run(*argv: str, **more: object) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=110, **more)  # type: ignore[call-overload]
    if done.returncode and (
        "Could not find a version" in done.stderr or "Connection" in done.stderr
    ):
        pytest.skip("needs a package registry for what the recorder depends on")
    assert done.returncode == 0, done.stderr[-2000:]
    return str(done.stdout)


@pytest.mark.timeout(300)
def test_it_installs_into_an_empty_environment_without_django_and_torch(tmp_path: Path) -> None:
    wheels = []
    for name in ("trajectory", "recorder"):
        # A copy: building leaves folders beside the sources.
        source = tmp_path / name
        shutil.copytree(
            ROOT / "packages" / name, source,
            ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"),
        )  # fmt: skip
        run(
            sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q",
            "-w", str(tmp_path / "wheels"), str(source),
        )  # fmt: skip
    wheels = [str(path) for path in (tmp_path / "wheels").iterdir()]
    assert len(wheels) == 2
    run(sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv"))
    python = str(tmp_path / "venv" / "bin" / "python")
    if shutil.which("uv"):
        run("uv", "pip", "install", "-q", "--python", python, *wheels)
    else:
        run(
            sys.executable, "-m", "pip", "--python", python, "install", "-q",
            "--disable-pip-version-check", *wheels,
        )  # fmt: skip

    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    command = str(tmp_path / "venv" / "bin" / "tandem-recorder")
    assert "record" in run(command, "--help", env=environment, cwd=str(tmp_path))
    seen = json.loads(run(python, "-c", LOOK, env=environment, cwd=str(tmp_path)))
    for unwanted in ("django", "torch", "transformers", "celery"):
        assert unwanted not in seen["installed"]
        assert unwanted not in seen["loaded"]
    assert "tandem-recorder" in seen["installed"] and "tandem-trajectory" in seen["installed"]
