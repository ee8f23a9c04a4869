"""A headless Chromium of its own, for demonstrations and evaluations that need no desktop."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FLAGS = (
    "--headless=new", "--no-sandbox", "--no-first-run", "--disable-gpu", "--hide-scrollbars",
    "--mute-audio", "--disable-extensions", "--disable-component-update",
    "--disable-background-networking", "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding", "--disable-backgrounding-occluded-windows",
    "--disable-gpu-vsync", "--disable-frame-rate-limit", "--remote-debugging-port=0",
)  # fmt: skip


class BrowserMissing(Exception):
    """No Chromium is installed, or it did not come up; the message says which."""


@contextmanager
def headless(*, width: int = 1280, height: int = 720) -> Iterator[int]:
    """Start a Chromium without a window and yield its DevTools port; it is gone afterwards."""
    binary = shutil.which("chromium") or shutil.which("chromium-browser")
    if binary is None:
        raise BrowserMissing("no chromium is installed: apt-get install chromium")
    with tempfile.TemporaryDirectory(prefix="tandem-chromium-", ignore_cleanup_errors=True) as home:
        process = subprocess.Popen(
            [binary, *FLAGS, f"--user-data-dir={home}", f"--window-size={width},{height}",
             "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield _port(process, Path(home) / "DevToolsActivePort")
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _port(process: subprocess.Popen[bytes], file: Path) -> int:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise BrowserMissing(f"chromium ended with code {process.returncode} while starting")
        if file.exists() and (lines := file.read_text().splitlines()):
            return int(lines[0])
        time.sleep(0.02)
    raise BrowserMissing("chromium did not open its DevTools port within 20 s")
