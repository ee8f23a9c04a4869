"""A recording through its pages: two reviewers correct it by keys and clicks, and it becomes a CT sample.

In a real Chromium against a live server. With RECORDINGS_PICTURES=FOLDER set, pictures of the pages
are kept there, light and dark, wide and narrow.
"""

from __future__ import annotations

import io
import math
import os
import re
import shutil
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import Browser, Page, expect

from annotation import jobs
from annotation.data.reviews import trajectory_of
from annotation.models import Application, Consent, Function, Recording
from annotation.session import pictures
from recorder.capture.sound import flac
from tests.annotation.recorded import Recorded, Sender, click, lines, sha
from tests.annotation.test_recordings_upload import token_of
from tests.e2e.seats import browsing, seat
from training.data import datasets
from training.data.selection import Filters
from trajectory import Click, Drag, Type
from trajectory.recording import AudioWritten, FrameTaken, Stopped, to_line

PICTURES = os.environ.get("RECORDINGS_PICTURES", "")
pytestmark = [
    pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium"),
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(300),
]


@pytest.fixture
def server(live_server: Any, settings: Any, tmp_path: Any) -> Iterator[str]:
    """A live Tandem whose files lie in folders of this test; gives its address."""
    settings.STORAGE_URL = f"file://{tmp_path / 'store'}"
    settings.RECORDING_SPOOL = tmp_path / "spool"
    pictures.store.cache_clear()
    Consent.objects.get_or_create(version="1", defaults={"text": "Screen, hand, voice."})
    yield live_server.url
    pictures.store.cache_clear()


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, int]]:
    """What the server leaves to its workers."""
    waiting: list[tuple[Any, int]] = []
    monkeypatch.setattr(jobs, "soon", lambda job, pk: waiting.append((job.run, pk)))
    return waiting


@pytest.fixture
def browser() -> Iterator[Browser]:
    with browsing() as chromium:
        yield chromium
        chromium.close()


def screen(words: str) -> bytes:
    """A picture of a form, a little larger than others so that places can be told apart."""
    image = Image.new("RGB", (1280, 720), "#eef1f6")
    paper = ImageDraw.Draw(image)
    paper.rectangle((340, 90, 940, 640), fill="white")
    paper.text((380, 120), words, fill="#1d2433", font_size=32)
    paper.rectangle((380, 260, 900, 310), outline="#8090a8", width=2)
    paper.rectangle((380, 520, 620, 580), fill="#2456d6")
    paper.text((450, 535), "Save", fill="white", font_size=26)
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def spoken() -> Recorded:
    """Four steps: a click, typing, a drag, and a click that missed; five seconds of sound."""
    recorded = Recorded()
    frames = [screen(words) for words in ("Expense report", "Expense report: travel")]
    for path in [path for path in recorded.files if path.startswith("frames/")]:
        del recorded.files[path]
    recorded.files |= {f"frames/{sha(frame)}.png": frame for frame in frames}
    recorded.about["screen"] = {"width": 1280, "height": 720}
    field = {"role": "entry", "name": "Purpose", "bounds": [380, 260, 520, 50]}
    drag = {"type": "drag", "path": [[400, 400], [600, 400]], "button": "left"}
    acts = [
        (3.0, click(500, 285), 0, field),
        (6.0, {"type": "type", "text": "travel", "submit": False}, 0, field),
        (30.0, drag, 1, None),
        (60.0, click(1200, 700), 1, {"role": "button", "name": "Save", "bounds": [380, 520, 240, 60]}),
    ]  # fmt: skip
    window = {"app": "chromium", "title": "Expenses", "url": ""}
    recorded.steps = [
        {"index": at, "began": began, "ended": began + 0.2, "action": action, "frame": sha(frames[which]),
         "frame_gap_ms": 20, "element": element, "window": window}
        for at, (began, action, which, element) in enumerate(acts)
    ]  # fmt: skip
    tone = [int(9000 * math.sin(n * 440 * math.tau / 16000)) for n in range(16000 * 5)]
    recorded.files["audio/00001.flac"] = flac(struct.pack(f"<{len(tone)}h", *tone))
    events = [
        AudioWritten(0.5, "00001.flac", 16000 * 5),
        *(FrameTaken(1.0, 0.9, sha(frame), 1280, 720) for frame in frames),
        Stopped(70.0),
    ]
    recorded.files["events.jsonl"] = "".join(to_line(event) + "\n" for event in events).encode()
    recorded.files["steps.jsonl"] = lines(recorded.steps)
    said = (
        ("click", 1.0),
        ("the", 1.4),
        ("purpose", 1.8),
        ("then", 4.6),
        ("type", 5.0),
        ("travel", 5.4),
    )
    recorded.files["words.jsonl"] = lines(
        [{"began": at, "ended": at + 0.3, "text": word, "confidence": 0.9, "by": "asr"} for word, at in said]
    )  # fmt: skip
    return recorded


def arrive(owner: Any, queue: list[Any], recorded: Recorded) -> Recording:
    assert Sender(token_of(owner)).send(recorded).status_code == 202
    while queue:
        job, pk = queue.pop(0)
        job(pk)
    row = Recording.objects.get(name=recorded.name)
    assert (row.status, row.cause) == ("in_review", "")
    return row


def at_pixel(page: Page, step: int, x: int, y: int) -> tuple[float, float]:
    """Return where a pixel of a step's frame is on the page."""
    svg = page.locator(f"#step-{step} .overlay")
    svg.scroll_into_view_if_needed()
    box = svg.bounding_box()
    assert box is not None
    return box["x"] + (x + 0.5) * box["width"] / 1280, box["y"] + (y + 0.5) * box["height"] / 720


def near(text: str, *wanted: int) -> bool:
    """Whether the places of an action are these but for the pixels that a smaller picture costs."""
    found = [int(number) for number in re.findall(r"\d+", text)]
    return len(found) == len(wanted) and all(
        abs(one - other) <= 2 for one, other in zip(found, wanted, strict=True)
    )


def keep(page: Page, name: str) -> None:
    if not PICTURES:
        return
    for width in (1440, 400):
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.wait_for_timeout(300)
            page.screenshot(path=f"{PICTURES}/{name}-{width}-{scheme}.png")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 800})


def test_two_reviewers_correct_by_keys_and_clicks_and_it_becomes_a_ct_sample(
    server: str, queue: list[Any], browser: Browser, annotator: Any, reviewer: Any, admin_user: Any
) -> None:
    row = arrive(annotator, queue, spoken())
    first = seat(browser, server, "reviewer")
    correct(first, server, row)
    row.refresh_from_db()
    assert row.status == "in_review"
    assert [step.kept for step in row.steps.all()] == [True, True, True, True]
    second = seat(browser, server, "admin")
    second.goto(f"{server}/recordings/{row.name}/review/")
    expect(second.locator("#command-3")).to_have_value(re.compile(r"click\(\d+, \d+\)"))
    second.keyboard.press("a")
    expect(second.locator("#confirm-what")).to_contain_text("without corrections")
    second.keyboard.press("Enter")
    expect(second.locator("body")).to_contain_text("Noted")
    row.refresh_from_db()
    assert row.status == Recording.Status.ACCEPTED
    frozen = datasets.freeze(name="reviewed", pool="ct", filters=Filters(), by=None)
    (found,) = datasets.trajectories(frozen)
    assert found == trajectory_of(row.session)
    pressed, typed, drawn, saved = (step.action for step in found.steps)
    assert isinstance(pressed, Click) and near(f"{pressed.x} {pressed.y}", 700, 290)
    assert typed == Type("travel to Oslo")
    assert isinstance(drawn, Drag) and near(str(drawn.path), 420, 430, 640, 430)
    assert isinstance(saved, Click) and near(f"{saved.x} {saved.y}", 500, 550)
    assert found.steps[2].thought == "I mark the day." and found.steps[3].thought == ""
    assert found.metadata["thoughts"] == "spoken spoken typed none"


def correct(page: Page, server: str, row: Recording) -> None:
    """Look through a recording as a reviewer, correct every step, accept it."""
    page.goto(f"{server}/recordings/review/")
    page.locator("table a").first.click()
    expect(page.locator("#step-0")).to_have_class(re.compile("current"))
    keep(page, "review")
    listen(page)
    # A click on the picture moves the action's place; Ctrl+Z takes it back, and again does it.
    command = page.locator("#command-0")
    page.mouse.click(*at_pixel(page, 0, 700, 290))
    assert near(command.input_value(), 700, 290)
    expect(page.locator("#step-0 .mark.edit")).to_be_visible()
    page.keyboard.press("Control+z")
    expect(command).to_have_value("click(500, 285)")
    page.mouse.click(*at_pixel(page, 0, 700, 290))
    # Typing: the same line as the workbench's, with its completion and its errors.
    page.keyboard.press("j")
    expect(page.locator("#step-1")).to_have_class(re.compile("current"))
    page.keyboard.press("c")
    command = page.locator("#command-1")
    expect(command).to_be_focused()
    command.fill("ty")
    expect(page.locator("#completions-1 li").first).to_contain_text("type")
    page.keyboard.press("Tab")
    page.keyboard.type("travel to Oslo")
    command.fill('type("travel to Oslo')
    command.blur()
    expect(page.locator("#wrong-1")).to_contain_text("write an action as")
    page.locator("button[value=accepted]").click()
    expect(command).to_be_focused()  # nothing is sent as long as it can't be read
    command.fill('type("travel to Oslo")')
    page.keyboard.press("Escape")
    # A place means nothing to typing.
    page.mouse.click(*at_pixel(page, 1, 5, 5))
    expect(page.locator(".toast").last).to_contain_text("no place")
    expect(command).to_have_value('type("travel to Oslo")')
    # A line drawn on the picture is a drag.
    page.keyboard.press("j")
    page.mouse.move(*at_pixel(page, 2, 420, 430))
    page.mouse.down()
    page.mouse.move(*at_pixel(page, 2, 640, 430))
    page.mouse.up()
    assert near(page.locator("#command-2").input_value(), 420, 430, 640, 430)
    page.keyboard.press("e")
    page.keyboard.type("I mark the day.")
    page.keyboard.press("Escape")
    page.keyboard.press("x")
    expect(page.locator("#step-2")).to_have_class(re.compile("left-out"))
    page.keyboard.press("Control+z")
    expect(page.locator("#step-2")).not_to_have_class(re.compile("left-out"))
    # What was typed is still there after a reload.
    page.reload()
    expect(page.locator("#thought-2")).to_have_value("I mark the day.")
    expect(page.locator("#command-1")).to_have_value('type("travel to Oslo")')
    # The click that missed was left out; the server says why it can't be kept, and keeps what was typed.
    last = page.locator("#step-3")
    expect(last).to_have_class(re.compile("left-out"))
    last.locator("[data-keep]").check()
    page.locator("button[value=accepted]").click()
    expect(page.locator("#wrong-3")).to_contain_text("does not lie on")
    expect(last).to_have_class(re.compile("current"))
    expect(page.locator("#thought-2")).to_have_value("I mark the day.")
    keep(page, "review-error")
    page.locator("#command-3").fill("click(500, 550)")
    page.keyboard.press("Escape")
    page.keyboard.press("r")
    expect(page.locator("#reasons")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".toast").last).to_contain_text("Say why")
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    expect(page.locator("body")).to_contain_text("Noted")


def listen(page: Page) -> None:
    """Play what was said beside the first step, and stop it."""
    button = page.locator("#step-0 [data-play]")
    with page.expect_response(re.compile("/sound/")) as answer:
        page.keyboard.press("p")
    assert answer.value.status == 200
    expect(button).to_have_class(re.compile("playing"))
    expect(button).not_to_have_class(re.compile("playing"))  # it ends by itself
    page.keyboard.press("p")
    expect(button).to_have_class(re.compile("playing"))
    page.keyboard.press("p")
    expect(button).not_to_have_class(re.compile("playing"))


def test_a_returned_recording_is_seen_and_corrected_by_its_contributor_who_may_withdraw_it(
    server: str, queue: list[Any], browser: Browser, annotator: Any, reviewer: Any
) -> None:
    row = arrive(annotator, queue, spoken())
    judge = seat(browser, server, "reviewer")
    judge.goto(f"{server}/recordings/{row.name}/review/")
    judge.keyboard.press("r")
    judge.keyboard.type("say why you drag")
    judge.keyboard.press("Enter")
    expect(judge.locator("body")).to_contain_text("Noted")
    person = seat(browser, server, "annotator")
    person.goto(f"{server}/recordings/")
    expect(person.locator("table")).to_contain_text("It came back to you")
    keep(person, "list")
    person.locator("table a").first.click()
    expect(person.locator(".notice.warn").first).to_contain_text("say why you drag")
    keep(person, "recording")
    person.locator("#thought-2").fill("I drag to choose the days.")
    person.get_by_text("Send to the reviewers again").click()
    expect(person.locator(".toast").last).to_contain_text("again")
    assert row.steps.get(index=2).provenance == "typed"
    with person.expect_download() as download:
        person.locator("a", has_text="Download all of it").click()
    assert download.value.suggested_filename == f"recording-{row.name[:8]}.zip"
    person.get_by_text("Withdraw…").click()
    expect(person.locator("#withdraw-dialog")).to_contain_text("No dataset holds it")
    keep(person, "withdraw")
    person.get_by_text("Delete it for good").click()
    expect(person.locator("table")).to_contain_text("You withdrew it.")
    row.refresh_from_db()
    assert row.status == "withdrawn" and not row.steps.exists()


def test_a_recording_that_has_not_come_whole_can_be_withdrawn(
    server: str, queue: list[Any], browser: Browser, annotator: Any
) -> None:
    recorded = Recorded()
    announced = Sender(token_of(annotator)).post("/api/recordings/", recorded.manifest())
    assert announced.status_code == 201
    person = seat(browser, server, "annotator")
    person.goto(f"{server}/recordings/{recorded.name}/")
    person.get_by_text("Withdraw…").click()
    person.get_by_text("Delete it for good").click()
    expect(person.locator("table")).to_contain_text("You withdrew it.")
    assert Recording.objects.get().status == "withdrawn"


def test_no_page_of_recordings_scrolls_sideways_and_bars_are_full(
    server: str, queue: list[Any], browser: Browser, annotator: Any, admin_user: Any
) -> None:
    row = arrive(annotator, queue, spoken())
    mine = arrive(admin_user, queue, Recorded())
    mail = Application.objects.create(
        name="Thunderbird with a long name", coverage=0.9, engagement=0.4, penetration=0.7
    )
    Function.objects.create(application=mail, name="Search", frequency=3)
    page = seat(browser, server, "admin")
    pages = (
        "/recordings/", "/recordings/review/", f"/recordings/{row.name}/review/", f"/recordings/{mine.name}/",
        "/device/", "/contributing/", "/contributing/import/", "/contributing/settings/",
        f"/contributing/applications/{mail.pk}/",
    )  # fmt: skip
    for path in pages:
        answer = page.goto(server + path)
        assert answer is not None and answer.status == 200, path
        for width in (1440, 400):
            page.set_viewport_size({"width": width, "height": 900})
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{path} is {wide} px wide at {width} px"
        keep(page, "page" + path.replace("/", "-").replace(row.name, "X").replace(mine.name, "Y"))
    page.goto(f"{server}/contributing/")
    shot = Image.open(io.BytesIO(page.locator("meter").first.screenshot()))
    left = [shot.convert("RGB").getpixel((4, y)) for y in range(shot.height)]
    accent = left[shot.height // 2]
    # The edges lie between pixels; a fill of half the height would be 4.
    assert sum(colour == accent for colour in left) >= 6, left
