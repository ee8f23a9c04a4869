"""People who sit at a browser before a live server of this very process."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.e2e.conftest import FLAGS


@contextmanager
def browsing() -> Iterator[Browser]:
    """A Chromium of people who look at pages; rows may be read meanwhile in this thread."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # Playwright's loop waits while rows are read
    try:
        with sync_playwright() as playwright:
            yield playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=[*FLAGS]
            )
            connections.close_all()  # what Django opened beside this loop it does not find later
    finally:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


def seat(browser: Browser, server: str, name: str) -> Page:
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.goto(f"{server}/accounts/login/")
    page.fill("[name=username]", name)
    page.fill("[name=password]", f"{name}-password")
    page.keyboard.press("Enter")
    expect(page.locator("header")).to_contain_text(name)
    return page
