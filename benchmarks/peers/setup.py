"""The peers' own Python environment and the programs they drive, under var/peers."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import venv
from pathlib import Path

from sandbox import miniwob
from sandbox.providers.browser.process import program

PINS = (
    "miniwob==1.1.0",
    "selenium==4.51.0",
    "gymnasium==1.4.0",
    "browsergym-core==0.14.3",
    "browsergym-miniwob==0.14.3",
    "playwright==1.44.0",
)
FOLDER = Path(__file__).parents[2] / "var" / "peers"
# What makes both peers fastest: no window, no waiting for a display's refresh.
FLAGS = "--disable-gpu-vsync --disable-frame-rate-limit"


def python() -> Path:
    """Return the interpreter that has the peers; installs them on first use."""
    found = FOLDER / "venv" / "bin" / "python"
    mark = FOLDER / "installed.txt"
    if not found.exists() or not mark.exists() or mark.read_text() != "\n".join(PINS):
        print("installing the peers into var/peers (once) ...", file=sys.stderr)
        venv.create(FOLDER / "venv", with_pip=True, clear=True)
        subprocess.run([found, "-m", "pip", "install", "-q", *PINS], check=True, timeout=900)
        mark.write_text("\n".join(PINS))
    return found


def chromedriver() -> str:
    """Return chromedriver's path; exits with the way out if it is missing."""
    found = shutil.which("chromedriver")
    if found is None:
        raise SystemExit("chromedriver is missing: apt-get install chromium-driver")
    return found


def environment() -> dict[str, str]:
    """Return the variables that make both peers drive the same headless shell, tuned."""
    wrapper = FOLDER / "browsers" / "chromium-1117" / "chrome-linux" / "chrome"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(f'#!/bin/sh\nexec {program()} {FLAGS} "$@"\n')
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    return {
        **os.environ,
        "MINIWOB_CHROME_BINARY": str(wrapper),
        "MINIWOB_CHROMEDRIVER": chromedriver(),
        "MINIWOB_URL": f"file://{miniwob.assets()}/html/miniwob/",
        "PLAYWRIGHT_BROWSERS_PATH": str(FOLDER / "browsers"),
        "PLAYWRIGHT_SKIP_VALIDATE_HOST_REQUIREMENTS": "1",
    }
