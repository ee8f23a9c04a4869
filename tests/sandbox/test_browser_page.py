"""One page as a Desktop: fresh pictures of the right size, fencing, dialogs, windows, no network."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from sandbox import miniwob
from sandbox.provider import ActionFailed, StaleLease
from sandbox.providers.browser import BrowserPage, Fleet, PageSpec
from tests.sandbox.pages import served
from trajectory import Click, Navigate, NavigateBack, Shell, Wait

SIZE = (200, 120)


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    with Fleet(browsers=2) as fleet:
        yield fleet


@pytest.fixture
def page(fleet: Fleet) -> Iterator[BrowserPage]:
    page = fleet.open(PageSpec(*SIZE))
    yield page
    page.close()


def write(folder: Path, body: str, name: str = "page.html") -> str:
    (folder / name).write_text(f"<!doctype html><body style='margin:0'>{body}")
    return (folder / name).as_uri()


def colour(png: bytes) -> tuple[int, ...]:
    with Image.open(io.BytesIO(png)) as picture:
        assert picture.size == SIZE
        found = picture.convert("RGB").getpixel((100, 60))
    assert isinstance(found, tuple)
    return found


def test_every_picture_shows_the_action_before_it(page, tmp_path):
    page.navigate(
        write(
            tmp_path,
            "<script>let n = 0; onclick = () => { n++;"
            "document.body.style.background = `rgb(${n}, ${255 - n}, 7)` }</script>",
        )
    )
    for n in range(1, 121):
        seen = page.step(Click(n % 200, 60), probe="n")
        assert seen.value == n
        assert colour(seen.png) == (n, 255 - n, 7)
    assert colour(page.observe().png) == (120, 135, 7)


@pytest.mark.parametrize("size", [(1, 1), (160, 210), (498, 321), (1280, 720)])
def test_a_picture_is_exactly_of_the_size(fleet, size):
    page = fleet.open(PageSpec(*size))
    frame = page.observe()
    with Image.open(io.BytesIO(frame.png)) as picture:
        assert picture.size == size == (frame.width, frame.height)
    assert page.evaluate("[innerWidth, innerHeight, devicePixelRatio]") == [*size, 1]
    page.close()


def test_a_page_that_never_stays_is_seen_all_the_same(page, tmp_path, monkeypatch):
    monkeypatch.setattr("sandbox.providers.browser.page.LOAD_S", 1.0)
    again = write(tmp_path, "<script>setTimeout(() => location.reload(), 1)</script>")
    page.target.send("Page.navigate", {"url": again})
    for _ in range(3):
        try:
            assert colour(page.observe().png)
        except ActionFailed as error:  # or it went while it was read, and that is said
            assert "navigated" in str(error)
    page.target.send("Page.navigate", {"url": "about:blank"})


def test_a_dialog_is_told_in_short(page, tmp_path):
    page.navigate(write(tmp_path, "<script>onclick = () => alert('x'.repeat(1e6))</script>"))
    (note,) = page.step(Click(5, 5)).notes
    assert "alert dialog 'xxx" in note and len(note) < 300


def test_animation_frames_run_with_frames_only(page, tmp_path):
    page.navigate(
        write(
            tmp_path,
            "<script>let n = 0; (function f() { n++;requestAnimationFrame(f) })()</script>",
        )
    )
    page.step(None)  # the first picture of a document may take a frame more
    before = page.evaluate("n")
    page.step(None)
    page.step(None)
    assert page.evaluate("n") == before + 2
    page.perform(Wait(100), epoch=0, action_id="w")
    assert page.evaluate("n") > before + 4
    assert page.evaluate("new Promise((done) => requestAnimationFrame(() => done('ran')))") == "ran"


def test_an_action_id_acts_once_and_an_old_epoch_never(page, tmp_path):
    page.navigate(write(tmp_path, "<script>let n = 0; onclick = () => n++</script>"))
    assert not page.perform(Click(5, 5), epoch=0, action_id="a").replayed
    assert page.perform(Click(5, 5), epoch=0, action_id="a").replayed
    assert page.evaluate("n") == 1
    page.fence(3)
    with pytest.raises(StaleLease):
        page.perform(Click(5, 5), epoch=2, action_id="b")
    with pytest.raises(StaleLease):
        page.fence(2)
    page.perform(Click(5, 5), epoch=3, action_id="b")
    assert page.evaluate("n") == 2
    assert page.health()["epoch"] == 3


def test_dialogs_are_answered_and_told(page, tmp_path):
    page.navigate(
        write(
            tmp_path,
            "<script>onclick = () => { alert('stop'); "
            "window.said = [confirm('sure?'), prompt('name?', 'Ada')] }</script>",
        )
    )
    done = page.perform(Click(5, 5), epoch=0, action_id="a")
    assert done.output.splitlines() == [
        "alert dialog 'stop' was accepted",
        "confirm dialog 'sure?' was accepted",
        "prompt dialog 'name?' was accepted",
    ]
    assert page.evaluate("said") == [True, "Ada"]


def test_a_new_window_opens_in_the_page(page, tmp_path):
    other = write(tmp_path, "<title>other</title>", "other.html")
    page.navigate(write(tmp_path, f"<a href='{other}' target=_blank>go</a>"))
    done = page.perform(Click(5, 5), epoch=0, action_id="a")
    assert page.observe().url == other
    assert "was opened here instead" in done.output + "".join(page.step(None).notes)
    page.perform(NavigateBack(), epoch=0, action_id="b")
    assert page.observe().url.endswith("page.html")


def test_a_link_is_followed_before_the_next_observation(page, tmp_path):
    other = write(tmp_path, "<p>other", "other.html")
    page.navigate(write(tmp_path, f"<a href='{other}'>go</a>"))
    seen = page.step(Click(5, 5), probe="document.body.textContent.trim()")
    assert seen.value == "other"


def test_only_the_origins_of_the_spec_are_reached(fleet, page, tmp_path):
    with served({"/": "<title>in</title>"}) as port, served({"/": "<title>out</title>"}) as other:
        page.navigate(write(tmp_path, "here"))
        for url in (f"http://127.0.0.1:{port}/", "http://example.com/", "https://1.1.1.1/"):
            with pytest.raises(ActionFailed, match="may not open"):
                page.perform(Navigate(url), epoch=0, action_id=url)
            assert (
                page.evaluate(f"fetch('{url}').then(() => 'reached', () => 'refused')") == "refused"
            )
        assert (
            page.evaluate(
                f"new Promise((done) => {{ const s = new WebSocket('ws://127.0.0.1:{port}/');"
                "s.onopen = () => done('open'); s.onerror = () => done('refused') })"
            )
            == "refused"
        )
        inside = fleet.open(PageSpec(*SIZE, origins=(f"http://127.0.0.1:{port}/",)), timeout=60)
        inside.navigate(f"http://127.0.0.1:{port}/")
        assert inside.evaluate("document.title") == "in"
        reach = "fetch('{}', {{mode: 'no-cors'}}).then(() => 'reached', () => 'refused')"
        assert inside.evaluate(reach.format(f"http://127.0.0.1:{port}/")) == "reached"
        assert inside.evaluate(reach.format(f"http://127.0.0.1:{other}/")) == "refused"
        with pytest.raises(ActionFailed, match="may not open"):
            inside.navigate(write(tmp_path, "file"))
        inside.close()


@pytest.mark.parametrize(
    "origin", ["http://example.com/", "ftp://127.0.0.1/", "http://127.0.0.1:80"]
)
def test_an_origin_elsewhere_is_refused_with_the_way_out(origin):
    with pytest.raises(ValueError, match="origin"):
        PageSpec(origins=(origin,))


def test_there_is_no_shell(page):
    with pytest.raises(ActionFailed, match="use a desktop"):
        page.perform(Shell("ls"), epoch=0, action_id="a")
    with pytest.raises(ActionFailed, match="no files"):
        page.read_file("x")
    with pytest.raises(ActionFailed, match="no shell"):
        page.shell("ls", epoch=0, action_id="a")


def test_a_script_that_throws_says_what(page):
    with pytest.raises(ActionFailed, match="no such thing"):
        page.evaluate("(() => { throw new Error('no such thing') })()")


def test_twenty_of_twenty_episodes_are_solved_by_pixels(fleet):
    page = fleet.open(PageSpec(width=160, height=210))
    page.navigate(miniwob.url("click-button", folder=miniwob.assets()))
    solved = 0
    for seed in range(20):
        said = str(page.evaluate(miniwob.start_script(seed)))
        elements = page.observe(elements=True).elements or ()
        _, action = miniwob.oracle("click-button", said, elements, [])
        assert isinstance(action, Click)
        seen = page.step(action, probe=miniwob.state_script())
        solved += miniwob.verdict(seen.value).reward == 1
    page.close()
    assert solved == 20


def test_waiting_on_a_stopped_clock_passes_its_time_and_none_of_ours(fleet, tmp_path):
    page = fleet.open(PageSpec(*SIZE, clock=True))
    page.navigate(write(tmp_path, "<script>n = 0; setInterval(() => n++, 1000)</script>"))
    page.perform(Wait(600_000), epoch=0, action_id="w")
    assert page.evaluate("[n, Math.round(performance.now())]") == [600, 600_000]
    page.close()
