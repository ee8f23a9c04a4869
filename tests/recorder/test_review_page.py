"""The page of the review in a real Chromium: by keyboard and mouse, without a word on its console."""

from __future__ import annotations

import re
import shutil
import threading
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from recorder.redact import Line
from recorder.review import Review, prepare
from tests.recorder.made_recording import Reads, canary_recording, found_by, no_reader

expect.set_options(timeout=60_000)  # ms; of itself it waits 5 s, which a busy machine outlasts
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


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
@pytest.mark.parametrize("wide", [1280, 400])
def test_it_opens_while_pictures_are_read_and_is_confirmed_by_keyboard_afterwards(
    tmp_path: Path, wide: int
) -> None:
    go = threading.Event()

    class Slow(Reads):
        def read(self, pixels: object, before: object) -> tuple[Line, ...]:
            assert self.count < 3 or go.wait(60)
            return super().read(pixels, None)

    ready = prepare(canary_recording(tmp_path), tmp_path / "never.toml", found_by())
    slow = Slow(Line("4111 1111 1111 1111", (40, 60, 200, 20)))
    with Review(ready, lambda: slow) as review, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": wide, "height": 800})
        said: list[str] = []
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(review.address)
        expect(page.locator("#looking-at")).to_contain_text("picture 4 of 9")
        expect(page.locator("#confirm")).to_be_disabled()
        page.keyboard.press("j")  # meanwhile it can be reviewed
        expect(page.locator("#steps button").nth(1)).to_have_attribute("aria-current", "")
        go.set()
        expect(page.locator("#confirm")).to_be_enabled(timeout=30_000)
        expect(page.locator("#looking")).to_be_hidden()
        expect(page.locator("#removed")).to_contain_text("read on pictures")
        expect(page.locator("#frame")).to_have_attribute("src", re.compile(r"\?1$"))
        assert page.evaluate("document.documentElement.scrollWidth") <= wide
        page.locator("#confirm").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#sure")).to_be_visible()
        expect(page.locator("#looked-line")).to_be_hidden()
        page.locator("#really").focus()
        page.keyboard.press("Enter")
        expect(page.locator(".local")).to_contain_text("Confirmed")
        browser.close()
    assert said == []


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_where_nothing_reads_pictures_the_page_says_so_and_asks(tmp_path: Path) -> None:
    ready = prepare(canary_recording(tmp_path), tmp_path / "never.toml", found_by())
    with Review(ready, no_reader) as review, sync_playwright() as playwright:
        review.looking.wait(60)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(review.address)
        expect(page.locator("#looking-at")).to_contain_text("look at each one yourself")
        page.locator("#confirm").click()
        page.locator("#really").click()
        expect(page.locator("#problem")).to_contain_text("looked at the pictures")
        page.locator("#looked").focus()
        page.keyboard.press("Space")
        page.locator("#really").click()
        expect(page.locator(".local")).to_contain_text("Confirmed")
        browser.close()
