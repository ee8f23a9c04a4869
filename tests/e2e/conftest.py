"""One stack and one browser for all end-to-end tests of a run."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.e2e.stack import Stack
from tests.waiting import until

expect.set_options(timeout=60_000)  # ms; of itself it waits 5 s, which a busy machine outlasts

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    folder = Path(tempfile.mkdtemp(prefix="tandem-e2e-"))
    folder.chmod(0o755)
    stack = Stack(folder / "state")
    try:
        stack.start()
        yield stack
        stack.stop()
        with contextlib.suppress(AssertionError):  # what was told to end may take a moment
            until(lambda: not stack.pids(), "all of it has ended", deadline_s=20)
        assert [words(pid) for pid in stack.pids()] == [], "something was left running"
    finally:
        if stack.process and stack.process.poll() is None:
            stack.process.kill()
        for pid in stack.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


def words(pid: int) -> str:
    """Return the command line of a process, or "" of one that has just ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run these last: a whole Tandem beside them would slow all other tests."""
    here = Path(__file__).parent
    items.sort(key=lambda item: here in item.path.parents)


# Not for the whole session: Playwright's event loop would make Django refuse the database to others.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    assert executable, "Chromium is missing: `make test` installs it"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1440, "height": 860})
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    context.close()
    assert errors == [], "the page's scripts failed"
