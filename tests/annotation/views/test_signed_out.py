"""Somebody whose sign-in ends under an open workbench is told so, and goes on without a reload."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from django.contrib.sessions.models import Session as SignIn
from playwright.sync_api import expect

from annotation.models import Session
from tests.e2e.seats import browsing, seat

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium"),
]
TIMEOUT = 60_000


def test_a_workbench_survives_its_sign_in(live_server: Any, session: Session) -> None:
    session.author.set_password("annotator-password")
    session.author.save()
    with browsing() as browser:
        page = seat(browser, live_server.url, "annotator")
        page.clock.install()
        page.goto(f"{live_server.url}/sessions/{session.pk}/")
        expect(page.locator("#state")).to_have_attribute("data-phase", "ready", timeout=TIMEOUT)
        SignIn.objects.all().delete()
        page.clock.fast_forward(20_000)  # past the next question to the server
        expect(page.locator("#notice")).to_contain_text("You are signed out", timeout=TIMEOUT)
        expect(page.locator("#state")).to_have_attribute("data-phase", "ready")
        page.fill("#thought", "typed while signed out")

        other = page.context.new_page()
        other.goto(f"{live_server.url}/accounts/login/")
        other.fill("[name=username]", "annotator")
        other.fill("[name=password]", "annotator-password")
        other.keyboard.press("Enter")
        expect(other.locator("header")).to_contain_text("annotator")
        page.bring_to_front()
        page.clock.fast_forward(20_000)
        page.fill("#thought", "typed after signing in again")
        expect(page.locator("#saved")).to_have_text("saved", timeout=TIMEOUT)
        expect(page.locator("#notice")).to_be_hidden(timeout=TIMEOUT)
        browser.close()
    session.refresh_from_db()
    assert session.draft["thought"] == "typed after signing in again"
