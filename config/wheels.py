"""The recorder's wheels, which the server offers on /recorder/: `python config/wheels.py [FOLDER]`.

Standard library and pip only: the installation and the image's build run it. Nothing is done while the
sources are those of the last time.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "var" / "recorder"  # settings.RECORDER_WHEELS
PACKAGES = ("trajectory", "recorder")
SETUPTOOLS = 80  # of their pyproject.toml


def main() -> int:
    try:
        build(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        print(f"wheels: the recorder's wheels could not be built: {said[-2000:]}", file=sys.stderr)
        return 1
    return 0


def build(target: Path) -> None:
    """Build the wheels into `target`; raises OSError, CalledProcessError."""
    stamp = sources()
    kept = target / "stamp"
    if kept.exists() and kept.read_text() == stamp:
        return
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target) as name:
        made = Path(name)
        for package in PACKAGES:  # copies: building leaves folders beside the sources
            shutil.copytree(
                ROOT / "packages" / package, made / package,
                ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"),
            )  # fmt: skip
        command = [
            *(
                sys.executable,
                "-m",
                "pip",
                "wheel",
                "--no-deps",
                "--disable-pip-version-check",
                "-q",
            ),
            *(["--no-build-isolation"] if has_setuptools() else []),
            *("-w", str(made / "wheels"), *(str(made / package) for package in PACKAGES)),
        ]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
        wheels = list((made / "wheels").glob("*.whl"))
        for wheel in wheels:  # whole or not at all: the server may be reading them
            wheel.chmod(0o644)
            wheel.replace(target / wheel.name)
    for old in target.glob("*.whl"):
        if old.name not in {wheel.name for wheel in wheels}:
            old.unlink()
    kept.write_text(stamp)


def sources() -> str:
    """Return what changes with every byte of the packages."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        folder = ROOT / "packages" / package
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc":
                digest.update(f"{path.relative_to(folder)}\0{path.stat().st_size}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


def has_setuptools() -> bool:
    """Whether this Python can build them without fetching anything."""
    try:
        return int(importlib.metadata.version("setuptools").split(".")[0]) >= SETUPTOOLS
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return False


if __name__ == "__main__":
    raise SystemExit(main())
