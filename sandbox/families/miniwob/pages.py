"""The pages of MiniWoB++: their names, their files, and the scripts that start and read an episode."""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import version
from pathlib import Path

from sandbox import miniwob
from sandbox.families.miniwob import server
from sandbox.families.protocol import TaskSpec, checksum

FAMILY_NAME = "miniwob"
FLIGHT = ("flight.AA", "flight.Alaska", "flight.Alaska-auto")
NO_ID = frozenset({"button-delay", "chase-circle", "hover-shape", "moving-items", "simon-says"})
"""Pages in the package that MiniWoB++ itself gives no id: they are not part of the benchmark."""

WIDTH, HEIGHT = 160, 210
FLIGHT_WIDTH, FLIGHT_HEIGHT = 375, 667

TIMED = {
    **dict.fromkeys(
        (
            "book-flight", "choose-date", "choose-date-easy", "choose-date-medium",
            "click-collapsible", "click-collapsible-2", "click-menu", "click-menu-2",
            "click-pie", "terminal", "use-autocomplete",
        ),
        400,
    ),
    "drag-cube": 100,
    "stock-market": 100,
}  # fmt: skip
"""Pages that change by the clock alone (animations, delays, a price that moves): the milliseconds that
pass after each action where the clock is ours."""

GRADED = {
    "bisect-angle": 0.95,
    "circle-center": 0.97,
    "find-midpoint": 0.97,
    "right-angle": 0.95,
}
"""Pages that grade how near a click came: no whole pixel is worth exactly 1 there. The raw reward
that counts as 1 is what the best pixel reaches on every seed that was tried."""

LONG = {
    "book-flight": 60, "book-flight-nodelay": 60, "choose-date": 40, "choose-date-nodelay": 40,
    "click-checkboxes-large": 40, "hot-cold": 60, "number-checkboxes": 40, "order-food": 40,
    "terminal": 60, "use-slider-2": 60, "use-autocomplete": 40, "use-autocomplete-nodelay": 40,
    "email-inbox": 40, "email-inbox-nl-turk": 40, "email-inbox-forward-nl-turk": 40,
    "stock-market": 120, "social-media-all": 50, "social-media-some": 50, "form-sequence": 40,
    "use-slider": 40, **dict.fromkeys(FLIGHT, 80),
}  # fmt: skip


def is_flight(page: str) -> bool:
    return page.startswith("flight.")


@cache
def names() -> tuple[str, ...]:
    """Return the 128 ids in a fixed order; FileNotFoundError where the package is missing."""
    html = (miniwob.assets() / "html" / "miniwob").glob("*.html")
    return (*sorted({page.stem for page in html} - NO_ID), *FLIGHT)


def spec(page: str) -> TaskSpec:
    """Return the task of one page; its checksum is over every file that the page can load."""
    flight = is_flight(page)
    return TaskSpec(
        family=FAMILY_NAME,
        name=page,
        version=version("miniwob"),
        checksum=checksum(start_script(page, 0), state_script(), _files(page)),
        surface="page",
        max_steps=LONG.get(page, 30),
        width=FLIGHT_WIDTH if flight else WIDTH,
        height=FLIGHT_HEIGHT if flight else HEIGHT,
        split="train",
        reference=GRADED.get(page, 0.0),
        reference_from="script" if page in GRADED else "",
        timed=page in TIMED,
        origins=(f"{server.base()}/",) if flight else (f"{miniwob.assets().as_uri()}/",),
        tags=("miniwob", "flight") if flight else ("miniwob",),
    )


def _files(page: str) -> dict[str, str]:
    """Return {path: sha256} of what the page is made of; shared folders count as a whole."""
    html = miniwob.assets() / "html"
    if is_flight(page):
        folder = html / "flight" / page.removeprefix("flight.")
        return {**_folder(html / "core"), **_folder(html / "flight" / "flight-common"),
                **_folder(folder)}  # fmt: skip
    source = html / "miniwob" / f"{page}.html"
    found = {**_folder(html / "core"), **_folder(html / "common", deep=False)}
    text = source.read_text(encoding="utf-8")
    for special in sorted((html / "common" / "special").iterdir()):
        if f"special/{special.name}/" in text:
            found |= _folder(special)
    return {**found, source.name: checksum(source.read_bytes())}


@cache
def _folder(folder: Path, *, deep: bool = True) -> dict[str, str]:
    found = sorted(folder.rglob("*") if deep else folder.glob("*"))
    root = miniwob.assets()
    return {
        str(path.relative_to(root)): checksum(path.read_bytes()) for path in found if path.is_file()
    }


def start_script(page: str, seed: int) -> str:
    """Return JavaScript that starts the episode of `seed` and gives the instruction; null: not yet.

    A flight page loads its inner page anew for each episode: `state_script` tells when it is ready.
    """
    begin = miniwob.start_script(seed)
    mark = json.dumps(f"{page}/{seed}")
    return f"""(() => {{
  const said = {begin};
  if (said !== null) window.tandemEpisode = {mark};
  return said;
}})()"""


def state_script() -> str:
    """Return JavaScript that gives {done, raw_reward, reason, utterance, ready, episode}.

    It gives null where the page in front is no episode.
    """
    return f"""(() => {{
  const state = {miniwob.state_script()};
  return state && {{...state, ready: WOB_TASK_READY, episode: window.tandemEpisode || ''}};
}})()"""
