"""The page of the review in a real Chromium: by keyboard and mouse, without a word on its console."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from recorder.review import Review, prepare
from tests.recorder.made_recording import Reads, canary_recording, found_by

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_a_recording_is_cut_painted_over_undone_and_confirmed(tmp_path: Path) -> None:
    ready = prepare(canary_recording(tmp_path), tmp_path / "never.toml", found_by())
    with Review(ready, Reads) as review, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1360, "height": 820})
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(review.address)
        expect(page.locator("#steps button")).to_have_count(5)
        page.keyboard.press("j")
        expect(page.locator("#steps button").nth(1)).to_have_attribute("aria-current", "")
        page.keyboard.press("Delete")
        expect(page.locator("#count")).to_have_text("4 of 5")
        box = page.locator("#frame").bounding_box()
        assert box
        page.mouse.move(box["x"] + 10, box["y"] + 200)
        page.mouse.down()
        page.mouse.move(box["x"] + 110, box["y"] + 260)
        page.mouse.up()
        expect(page.locator("#overlay .blur")).to_have_count(1)
        page.keyboard.press("Control+z")
        expect(page.locator("#overlay .blur")).to_have_count(0)
        word = page.locator("#words .text").first
        word.fill("We")
        word.press("Enter")
        expect(page.locator("#words .text.person")).to_have_text("We")
        page.locator("#confirm").click()
        page.locator("#really").click()
        expect(page.locator(".local")).to_contain_text("Confirmed")
        browser.close()
    assert [edit["op"] for edit in review.edits.made] == ["delete", "words"]
    assert said == []
    assert all(url.startswith(review.address) for url in asked)
