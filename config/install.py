"""`make install`: system packages, the virtual environment and what goes into it.

Standard library only: this runs before anything is installed. A second run that has nothing to do
takes a fraction of a second: a stamp remembers the lock files it installed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Not an import: config/__init__.py wants Celery, which is what we are about to install.
missing = runpy.run_path(str(ROOT / "config" / "embedded" / "packages.py"))["missing"]

VENV = ROOT / ".venv"
STAMP = VENV / "tandem-stamp"
LOG = ROOT / "var" / "log" / "install.log"
LOCKS = ("requirements.lock", "requirements-data.lock")
# A line of its own, without a hash: a local CPU build has another hash than the public one.
TORCH = "torch==2.13.0"
OUR_PACKAGES = ("packages/trajectory", "packages/guest", "packages/blobs", "packages/recorder")


class Stop(Exception):
    """Why it cannot go on, and the way out; one line."""


def main() -> int:
    try:
        if sys.version_info < (3, 11):  # noqa: UP036  whoever runs this may have any Python
            raise Stop("Python 3.11 or newer is needed: `apt-get install -y python3.11`")
        system_packages()
        environment()
        recorder()
    except Stop as stop:
        print(f"install: {stop}", file=sys.stderr)
        return 1
    return 0


def system_packages() -> None:
    """Install what is missing with apt, as root or by sudo without a password; else say what to do."""
    wanted = list(missing())
    if not VENV.exists() and importlib.util.find_spec("ensurepip") is None:
        wanted.append(f"python3.{sys.version_info.minor}-venv")
    if not wanted:
        return
    apt = shutil.which("apt-get")
    line = f"apt-get install -y --no-install-recommends {' '.join(wanted)}"
    if apt is None:
        raise Stop(
            f"this is no Debian or Ubuntu; install what these packages hold: {' '.join(wanted)}"
        )
    prefix: list[str] = []
    if os.geteuid() != 0:
        sudo = shutil.which("sudo")
        if sudo is None or subprocess.run([sudo, "-n", "true"], capture_output=True).returncode:
            raise Stop(f"{len(wanted)} system packages are missing; as root: {line}")
        prefix = [sudo, "-n"]
    print(f"Installing system packages: {' '.join(wanted)}", flush=True)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run([*prefix, apt, "update"], "apt-get update", quiet)
    run([*prefix, apt, *line.split()[1:]], "apt-get install", quiet)


def environment() -> None:
    """Make .venv and install the locks, unless that is what it holds already."""
    stamp = wanted_stamp()
    if STAMP.exists() and STAMP.read_text() == stamp:
        return
    python = VENV / "bin" / "python"
    if not works(python):
        print("Making the virtual environment .venv", flush=True)
        run([sys.executable, "-m", "venv", "--clear", str(VENV)], "python -m venv", None)
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    print("Installing Python packages; the first time takes minutes", flush=True)
    run([*pip, TORCH], f"pip install {TORCH}", None)
    for lock in LOCKS:
        run([*pip, "--no-deps", "--require-hashes", "-r", str(ROOT / lock)], f"pip, {lock}", None)
    (site_packages() / "tandem.pth").write_text(
        "".join(f"{path}\n" for path in (ROOT, *(ROOT / package for package in OUR_PACKAGES)))
    )
    STAMP.write_text(stamp)


def recorder() -> None:
    """Build what /recorder/ offers; without it everything else works, and that page says so."""
    try:
        run([str(VENV / "bin" / "python"), str(ROOT / "config" / "wheels.py")], "wheels", None)
    except Stop as stop:
        print(f"install: {stop}", file=sys.stderr)


def wanted_stamp() -> str:
    """Return what identifies a finished installation: locks, Python, and where the checkout lies."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for lock in LOCKS:
        digest.update((ROOT / lock).read_bytes())
    return f"{digest.hexdigest()} {sys.version_info[:2]} {ROOT}\n"


def works(python: Path) -> bool:
    """Return whether the environment is there and of this Python's version."""
    if not python.exists():
        return False
    asked = subprocess.run(
        [python, "-c", "import pip, sys; print(sys.version_info[:2])"],
        capture_output=True,
        text=True,
    )
    return asked.stdout.strip() == str(sys.version_info[:2])


def site_packages() -> Path:
    return VENV / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"


def run(command: list[str], what: str, env: dict[str, str] | None) -> None:
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with LOG.open("a") as log:
        log.write(f"--- {' '.join(command)}\n")
        log.flush()
        done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, env=env)
    if done.returncode:
        lines = [line for line in LOG.read_text(errors="replace").splitlines() if line.strip()]
        errors = [line for line in lines if line.lower().startswith(("error", "e:"))]
        raise Stop(f"{what} failed: {(errors or lines)[-1].strip()}; the whole of it is in {LOG}")


if __name__ == "__main__":
    raise SystemExit(main())
