"""The clock of browser pages: what stops, what moves by how much, in which order, and to which end."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from guest.page import Page
from sandbox import browser
from sandbox.providers.browser import BrowserPage, Fleet, PageSpec
from sandbox.providers.browser.clock import Clock, ClockMissing
from tests.sandbox import pages

pytestmark = pytest.mark.timeout(120)

SELF_TEST = Path(browser.__file__).parent / "providers/browser/clock_selftest.html"
EMPTY = "<!doctype html><title>empty</title><body></body>"
FOREIGN = """<!doctype html><script>let n = 0;
(function frame() { n += 1; requestAnimationFrame(frame); })();
onmessage = () => parent.postMessage({ n: n - 1, date: Date.now() }, "*");</script>"""


@pytest.fixture(scope="module")
def site() -> Iterator[int]:
    texts = {
        "/": EMPTY,
        "/selftest": SELF_TEST.read_text(),
        "/game": pages.GAME,
        "/foreign": FOREIGN,
        "/sub/worker.js": "importScripts('part.js'); postMessage([location.pathname, part()]);",
        "/sub/part.js": "function part() { return Date.now(); }",
        "/sub/module.js": "import { part } from './other.js'; postMessage(part());",
        "/sub/other.js": "export const part = () => Date.now();",
    }
    with pages.served(texts) as port:
        yield port


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    with Fleet(browsers=1) as fleet:
        yield fleet


@pytest.fixture
def opened(fleet: Fleet, site: int):
    """Open a path of the site with a clock."""
    pages_of_test: list[BrowserPage] = []

    def open_path(path: str, seed: int = 1) -> BrowserPage:
        origins = (f"http://127.0.0.1:{site}/", f"http://localhost:{site}/")
        page = fleet.open(PageSpec(width=320, height=240, clock=True, seed=seed, origins=origins))
        pages_of_test.append(page)
        page.navigate(f"http://127.0.0.1:{site}{path}")
        return page

    yield open_path
    for page in pages_of_test:
        page.close()


def prove(page, clock: Clock) -> dict[str, tuple[float, float]]:
    """Return for each mechanism of the self-test how far it moved while paused and when stepped."""
    page.evaluate("ready.then(() => playing)")
    clock.step(100)
    first = page.evaluate("readings()")
    time.sleep(0.25)
    second = page.evaluate("readings()")
    clock.step(500)
    third = page.evaluate("readings()")
    return {
        name: (second[name] - first[name], third[name] - second[name])
        for name in first
        if first[name] is not None
    }


def check(moved: dict[str, tuple[float, float]]) -> None:
    assert len(moved) >= 22
    stopped = {name: still for name, (still, _) in moved.items() if abs(still) > 1e-6}
    assert not stopped, "moved while the clock stood still"
    # An idle callback is a favour; a style's value is rounded.
    wrong = {name: by for name, (_, by) in moved.items() if abs(by - 500) > 0.5}
    assert not wrong, "did not move by exactly the step"


def test_headless_shell_stops_and_steps_every_mechanism(opened, fleet, record_property):
    page = opened("/selftest")
    record_property("browser", page.evaluate("navigator.userAgent"))
    check(prove(page, page.clock))


def test_full_chromium_stops_and_steps_every_mechanism(site, record_property):
    with browser.headless(width=640, height=480) as port:
        page = Page(port, timeout=20)
        page.call("Page.enable")
        for script in Clock.scripts(seed=1):
            page.call("Page.addScriptToEvaluateOnNewDocument", {"source": script})
        page.navigate(f"http://127.0.0.1:{site}/selftest")
        record_property("browser", page.evaluate("navigator.userAgent"))
        check(prove(page, Clock(page)))
        page.close()


def test_a_page_without_the_scripts_says_so(fleet):
    page = fleet.open(PageSpec(width=100, height=100))
    with pytest.raises(ClockMissing, match="no clock"):
        Clock(page).step(10)
    page.close()


def test_workers_by_address_keep_their_place_and_the_time(opened):
    page = opened("/")
    for name, kind, want in [
        ("worker.js", "classic", ["/sub/worker.js"]),
        ("module.js", "module", []),
    ]:
        said = page.evaluate(
            f"new Promise((answer, fail) => {{ const w = new Worker('sub/{name}', {{type: '{kind}'}});"
            "w.onmessage = ({data}) => answer([data].flat()); w.onerror = fail; })"
        )
        assert said == [*want, page.evaluate("Date.now()")]


def test_workers_that_end_or_never_begin_hold_nothing_up(opened):
    page = opened("/")
    page.evaluate("""(() => {
      const blob = (code) => URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
      new Worker('sub/missing.js'); new Worker('sub/missing.js', { type: 'module' });
      new Worker(blob('setTimeout(() => close(), 30)'));
      const cut = new Worker(blob('setInterval(() => {}, 1)')); setTimeout(() => cut.terminate(), 20);
      new Worker(blob('throw new Error(1)'));
      globalThis.lost = document.createElement('iframe'); document.body.append(lost);
      lost.contentWindow.setInterval(() => { globalThis.late = performance.now(); }, 10);
      setTimeout(() => lost.remove(), 25);
    })()""")
    page.evaluate("new Promise((go) => { const w = new Worker('sub/module.js', {type: 'module'});"
                  "w.onmessage = go; })")  # fmt: skip
    assert page.clock.step(100).now == 100
    assert page.evaluate("late") == 20


def test_a_frame_of_another_origin_keeps_time_with_the_page(opened, site):
    page = opened("/")
    page.clock.step(1000)
    page.evaluate(
        "new Promise((done) => { const f = document.createElement('iframe'); f.onload = done;"
        f"f.src = 'http://localhost:{site}/foreign'; document.body.append(f); }})"
    )
    ask = (
        "new Promise((done) => { addEventListener('message', (e) => done(e.data), {once: true});"
        "document.querySelector('iframe').contentWindow.postMessage('say', '*'); })"
    )
    first = page.evaluate(ask)
    assert page.clock.step(500).followers == (f"frame of http://localhost:{site}",)
    second = page.evaluate(ask)
    assert second["n"] - first["n"] == 30 and second["date"] - first["date"] == 500
    assert second["date"] == page.evaluate("Date.now()")


def test_nothing_looks_replaced(opened):
    page = opened("/")
    said = page.evaluate("""(() => {
      const frame = document.createElement('iframe'); document.body.append(frame);
      const other = frame.contentWindow.Function.prototype.toString;
      const own = [Date, Date.now, performance.now, setTimeout, setInterval, clearTimeout, Worker,
        requestAnimationFrame, Math.random, Function.prototype.toString, Element.prototype.animate,
        Object.getOwnPropertyDescriptor(Event.prototype, 'timeStamp').get];
      return {
        text: own.every((f) => f.toString() === `function ${f.name}() { [native code] }`
          && other.call(f) === f.toString()),
        shapes: [setTimeout.length, Date.length, requestAnimationFrame.length, setTimeout.name],
        plain: [new Date() instanceof Date, Date.prototype.constructor === Date,
          typeof Date(), new Date(0).getTime(), 'prototype' in setTimeout],
        keys: Object.keys(window).filter((name) => name.includes('clock')),
      };
    })()""")
    assert said["text"] is True
    assert said["shapes"] == [1, 7, 1, "setTimeout"]
    assert said["plain"] == [True, True, "string", 0, False]
    assert said["keys"] == []


def test_timers_run_by_time_and_then_in_order(opened):
    """Against a model in Python: random delays, cancellations, intervals and timers set by timers."""
    page = opened("/")
    rng = random.Random(4)
    plan = [
        {"id": n, "at": rng.choice([0, 5, 5, 20, 33.7, 50]), "child": rng.choice([None, 0, 7, 30]),
         "cancel": rng.random() < 0.2}
        for n in range(60)
    ]  # fmt: skip
    page.evaluate(f"""(() => {{ globalThis.log = []; const plan = {json.dumps(plan)};
      const ids = plan.map((one) => setTimeout((name) => {{
        log.push([name, performance.now()]);
        Promise.resolve().then(() => {{}}).then(() => log.push([name + 'm', performance.now()]));
        if (one.child !== null) setTimeout(() => log.push([name + 'c', performance.now()]), one.child);
      }}, one.at, String(one.id)));
      plan.forEach((one, i) => one.cancel && clearTimeout(ids[i])); }})()""")
    page.clock.step(100)
    expected = []
    first = sorted((one for one in plan if not one["cancel"]), key=lambda one: int(one["at"]))
    events = [(int(one["at"]), 0, n, one) for n, one in enumerate(first)]
    for due, _, n, one in events:
        name = str(one["id"])
        expected.append(((due, 0, n, 0), [name, due]))
        expected.append(((due, 0, n, 1), [name + "m", due]))
        if one["child"] is not None:
            # A child is set after all of the first generation: later in sequence at equal times.
            expected.append(((due + one["child"], 1, n, 0), [name + "c", due + one["child"]]))
    assert page.evaluate("log") == [entry for _, entry in sorted(expected, key=lambda e: e[0])]


def test_nested_timers_are_held_to_four_milliseconds_and_text_is_run(opened):
    page = opened("/")
    page.evaluate(
        "globalThis.n = 0; (function again() { n += 1; setTimeout(again, 0); })();"
        "setTimeout('globalThis.text = 1', 3); globalThis.k = 0;"
        "globalThis.i = setInterval(() => { k += 1; if (k === 3) clearInterval(i); }, 10)"
    )
    page.clock.step(40)
    # Five at once, then one each 4 ms.
    assert page.evaluate("[n, text, k]") == [16, 1, 3]


def test_an_error_in_a_callback_reaches_the_page_and_time_goes_on(opened):
    page = opened("/")
    page.evaluate(
        "globalThis.seen = []; onerror = (text) => { seen.push(text); };"
        "setTimeout(() => { throw new Error('broken'); }, 5); setTimeout(() => seen.push('next'), 6)"
    )
    page.clock.step(10)
    assert page.evaluate("seen") == ["Uncaught Error: broken", "next"]


def test_a_loop_that_waits_for_the_clock_comes_back(opened):
    page = opened("/")
    assert page.evaluate(
        "(() => { const t = Date.now(); while (Date.now() - t < 20); return 1; })()"
    )


def test_the_time_line_has_no_jump_when_the_rate_changes(opened):
    page = opened("/")
    page.evaluate(
        "globalThis.seen = []; (function frame(t) { if (t) seen.push(t); requestAnimationFrame(frame); })()"
    )
    clock = page.clock
    assert clock.rate(16).mode == "stepped"
    assert clock.resume().mode == "scaled"
    for rate in (100, 1, 8):
        before = clock.state().now
        assert clock.rate(rate).now >= before
        time.sleep(0.06)
    stopped = clock.pause()
    assert stopped.mode == "stepped" and stopped.now > 0
    time.sleep(0.05)
    assert clock.state().now == stopped.now
    assert clock.step(25).now == pytest.approx(stopped.now + 25)
    seen = page.evaluate("seen")
    gaps = {round(b - a, 6) for a, b in itertools.pairwise(seen)}
    assert gaps == {round(1000 / 60, 6)}
    with pytest.raises(ValueError, match="rate"):
        clock.rate(0)
