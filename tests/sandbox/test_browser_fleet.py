"""Many pages over few browsers: clean, recycled, collected; what dies says why and takes nobody along."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from sandbox.provider import DesktopLost, ProvisionFailed
from sandbox.providers.browser import BrowserPage, Fleet, FleetFull, PageSpec, cdp, process
from sandbox.providers.browser.process import tree
from sandbox.providers.browser.target import Target
from tests.sandbox.pages import served
from tests.waiting import until

SMALL = PageSpec(width=160, height=120)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with Fleet(browsers=2, state=tmp_path / "state") as fleet:
        yield fleet


def test_a_page_comes_back_clean(fleet):
    with served({"/": "<title>x</title>"}) as port:
        spec = PageSpec(160, 120, origins=(f"http://127.0.0.1:{port}/",))
        before = fleet.open(spec)
        before.navigate(f"http://127.0.0.1:{port}/")
        before.evaluate(
            "localStorage.a = 1; sessionStorage.a = 1; document.cookie = 'a=1';"
            "name = 'left'; caches.open('a').then((c) => c.put('/', new Response('')))"
        )
        before.close()
        after = fleet.open(spec)
        assert after.boot_id != before.boot_id
        after.navigate(f"http://127.0.0.1:{port}/")
        assert after.evaluate(
            "caches.keys().then((keys) => [localStorage.length, sessionStorage.length,"
            "document.cookie, name, keys.length, history.length > 2])"
        ) == [0, 0, "", "", 0, False]  # fmt: skip
        with pytest.raises(DesktopLost, match="closed"):
            before.observe()


@pytest.mark.parametrize("crashes", [1, 2])
def test_a_browser_that_crashes_as_it_starts_is_started_once_more(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crashes: int
) -> None:
    script, starts = tmp_path / "browser", tmp_path / "starts"
    script.write_text(
        f"#!/bin/sh\necho >> {starts}\n"
        f'[ $(wc -l < {starts}) -gt {crashes} ] || kill -SEGV $$\nexec {process.program()} "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setattr(process, "program", lambda: str(script))
    if crashes == 1:
        assert fleet.open(SMALL).observe().width == 160
    else:
        with pytest.raises(ProvisionFailed, match="SIGSEGV"):
            fleet.open(SMALL)
    assert len(starts.read_text()) == 2


def test_a_checkpoint_brings_back_what_was_stored(fleet):
    body = (
        "<script>window.first = localStorage.a; onpagehide = () => localStorage.a = 'late'</script>"
    )
    with served({"/": body}) as port:
        spec = PageSpec(160, 120, origins=(f"http://127.0.0.1:{port}/",))
        page = fleet.open(spec)
        page.navigate(f"http://127.0.0.1:{port}/")
        page.evaluate("localStorage.a = 'x'; sessionStorage.b = 'y'; document.cookie = 'c=z'")
        taken = page.checkpoint()
        page.evaluate("localStorage.a = 'other'; sessionStorage.clear(); document.cookie = 'c=1'")
        for other in (page, fleet.open(spec)):
            other.restore(taken)
            kept = other.evaluate("[first, localStorage.a, sessionStorage.b, document.cookie]")
            assert kept == ["x", "x", "y", "c=z"]


def test_a_page_waits_for_its_turn_and_says_when_there_is_none(tmp_path):
    with Fleet(browsers=1, pages=1, state=tmp_path) as fleet:
        first = fleet.open(SMALL)
        with pytest.raises(FleetFull, match="all 1 pages"):
            fleet.open(SMALL, timeout=0.1)
        threading.Timer(0.2, first.close).start()
        fleet.open(SMALL, timeout=60).close()


def test_a_killed_browser_is_told_and_replaced(fleet):
    pages = [fleet.open(SMALL) for _ in range(2)]
    assert pages[0].browser_pid != pages[1].browser_pid
    waiting = ThreadPoolExecutor(1).submit(pages[0].evaluate, "new Promise(() => 0)")
    time.sleep(0.1)
    os.kill(pages[0].browser_pid, signal.SIGKILL)
    with pytest.raises(DesktopLost, match="killed by signal 9"):
        waiting.result(60)
    with pytest.raises(DesktopLost, match=r"killed by signal 9 \(SIGKILL\)"):
        pages[0].observe()
    assert pages[1].evaluate("1 + 1") == 2, "the other browser goes on"
    assert fleet.open(SMALL).evaluate("2 + 2") == 4
    assert any("signal 9" in cause for cause in fleet.stats()["ends"])


def test_a_crashed_renderer_is_told_and_its_neighbour_goes_on(tmp_path):
    with Fleet(browsers=1, state=tmp_path) as fleet:
        lost, other = fleet.open(SMALL), fleet.open(SMALL)
        lost.target.send("Page.crash")
        until(lambda: lost.target.lost, "the end of the renderer")
        with pytest.raises(DesktopLost, match="renderer died: crashed"):
            lost.observe()
        assert other.step(None, probe="1").value == 1
        lost.close()
        assert fleet.open(SMALL).step(None, probe="2").value == 2
        assert fleet.stats()["browsers"] == 1


def test_a_page_that_never_answers_is_given_up(tmp_path, monkeypatch):
    with Fleet(browsers=2, state=tmp_path) as fleet:
        lost, other = fleet.open(SMALL), fleet.open(SMALL)
        with monkeypatch.context() as short:
            short.setattr("sandbox.providers.browser.target.ANSWER_S", 1.0)
            with pytest.raises(DesktopLost, match="no answer"):
                lost.evaluate("for (;;) {}")
        assert other.step(None, probe="1").value == 1
        assert fleet.open(SMALL).step(None, probe="2").value == 2


def test_a_page_that_has_no_picture_from_the_first_is_not_given_out(fleet, monkeypatch):
    """Chromium makes one now and then on busy cores, and nothing mends it."""
    frame, blank = Target.frame, []

    def first_is_blank(target, *, picture, jpeg=0):
        if picture and not blank:
            blank.append(target)
            raise target.give_up("a picture")
        return frame(target, picture=picture, jpeg=jpeg)

    monkeypatch.setattr(Target, "frame", first_is_blank)
    page = fleet.open(SMALL)
    assert page.target is not blank[0] and blank[0].lost
    assert page.step(None, probe="1 + 1").png
    assert fleet.stats()["ends"] == {} and fleet.stats()["pages"] == 1


@pytest.mark.parametrize(
    ("limits", "cause"),
    [
        ({"max_opened": 2}, "number of pages"),
        ({"max_age_s": 0.0}, "age"),
        ({"max_mb": 1}, "memory"),
    ],
)
def test_a_browser_is_recycled_once_its_pages_are_closed(tmp_path, limits, cause):
    with Fleet(browsers=1, state=tmp_path, **limits) as fleet:
        pages = [fleet.open(SMALL), fleet.open(SMALL)]
        fleet.tend()
        assert pages[0].evaluate("1") == 1, "an open page is never taken away"
        for page in pages:
            page.close()
        fleet.tend()
        assert fleet.stats()["ends"] == {cause: 1}
        assert fleet.open(SMALL).browser_pid != pages[0].browser_pid


def test_a_page_that_nobody_uses_is_closed(tmp_path):
    with Fleet(browsers=1, state=tmp_path, idle_s=0.05) as fleet:
        page = fleet.open(SMALL)
        time.sleep(0.1)
        fleet.tend()
        with pytest.raises(DesktopLost, match="nobody used it"):
            page.observe()
        assert fleet.stats()["pages"] == 0


def test_nothing_is_left_behind(tmp_path):
    with Fleet(browsers=2, state=tmp_path) as fleet:
        pages = [fleet.open(SMALL) for _ in range(3)]
        pids = {pid for page in pages for pid in tree(page.browser_pid)}
        assert len(pids) >= 4
        assert sorted(path.name.split("-")[0] for path in tmp_path.iterdir()) == ["browser"] * 2
    until(lambda: not any(alive(pid) for pid in pids))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DesktopLost):
        pages[0].observe()


def test_a_browser_that_reads_no_more_gets_no_command_behind_half_a_one(monkeypatch):
    monkeypatch.setattr(cdp, "_UNREAD_S", 0.1)
    (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
    connection = cdp.Connection(ours_in, ours_out, cause=lambda: "", lost=lambda cause: None)
    with pytest.raises(cdp.Gone, match="stopped reading"):
        connection.send("Page.navigate", {"url": "x" * (1 << 20)})
    held = len(os.read(theirs_in, 2 << 20))
    with pytest.raises(cdp.Gone):
        connection.send("Browser.close")
    assert held < 1 << 20 and os.read(theirs_in, 1) == b""
    for fd in (theirs_in, theirs_out):
        os.close(fd)


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def test_a_dead_process_leaves_a_profile_that_the_next_fleet_removes(tmp_path):
    (tmp_path / "browser-999999999-x").mkdir()
    with Fleet(browsers=1, state=tmp_path):
        assert list(tmp_path.iterdir()) == []


@pytest.mark.timeout(300)
def test_many_threads_share_one_fleet(tmp_path):
    def use(number: int) -> object:
        page: BrowserPage = fleet.open(SMALL, timeout=280)
        try:
            return page.step(None, probe=f"{number} * 2").value
        finally:
            page.close()

    with Fleet(browsers=2, pages=4, state=tmp_path) as fleet, ThreadPoolExecutor(64) as threads:
        assert list(threads.map(use, range(64))) == [2 * n for n in range(64)]
        assert fleet.stats()["pages"] == 0
        assert fleet.stats()["browsers"] <= 2


def test_a_stream_of_one_kind_does_not_keep_the_other_waiting(tmp_path):
    with Fleet(browsers=2, pages=2, state=tmp_path) as fleet:
        files = [fleet.open(SMALL) for _ in range(4)]
        other = ThreadPoolExecutor(1).submit(
            fleet.open, PageSpec(160, 120, origins=("http://127.0.0.1:1/",)), timeout=100
        )
        for _ in range(8):  # one comes as one goes, as episodes do
            files.pop(0).close()
            if other.done():
                break
            with suppress(FleetFull):
                files.append(fleet.open(SMALL, timeout=1))
        assert other.result(100).evaluate("1 + 1") == 2
