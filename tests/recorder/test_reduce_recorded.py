"""On a real display: the picture of a step never shows what the step did."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from PIL import Image
from Xlib import X, display

from recorder.reduce import steps
from tests.recorder.conftest import Hand, Recorded, needs_x
from tests.waiting import until
from trajectory.recording import FrameTaken, Released

Record = Callable[..., Recorded]
COLOURS = [(200, 30 + 25 * n, 60) for n in range(8)]


class Lamp:
    """A window over a part of the screen that takes the next colour as soon as it is clicked."""

    def __init__(self, screen: str) -> None:
        self.display = display.Display(screen)
        root = self.display.screen()
        self.window = root.root.create_window(
            300, 200, 400, 300, 0, root.root_depth, event_mask=X.ButtonPressMask | X.ExposureMask,
            background_pixel=self._pixel(0), override_redirect=1,
        )  # fmt: skip
        self.window.map()
        self.display.sync()
        self.count = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _pixel(self, n: int) -> int:
        red, green, blue = COLOURS[n]
        return red << 16 | green << 8 | blue

    def _run(self) -> None:
        while not self.over.is_set():
            while self.display.pending_events():
                if self.display.next_event().type == X.ButtonPress:
                    self.count += 1
                    self.window.change_attributes(background_pixel=self._pixel(self.count))
                    self.window.clear_area()
                    self.display.flush()
            self.over.wait(0.002)
        self.window.destroy()
        self.display.close()


@pytest.fixture
def lamp(screen: str) -> Iterator[Lamp]:
    made = Lamp(screen)
    yield made
    made.over.set()
    made.thread.join(10)


@needs_x
def test_no_picture_of_a_recorded_click_shows_its_effect(
    record: Record, hand: Hand, lamp: Lamp
) -> None:
    recorded = record()
    recorded.wait(lambda e: any(isinstance(f, FrameTaken) for f in e), "the first picture")

    def shown(n: int) -> bool:
        return any(
            colour(recorded, frame.sha256) == COLOURS[n]
            for frame in recorded.of(FrameTaken)
            if isinstance(frame, FrameTaken)
        )

    for n in range(5):
        until(lambda n=n: shown(n), f"colour {n} on a picture")  # type: ignore[misc]
        hand("mousemove", str(350 + 40 * n), "300", "click", "1")
    recorded.wait(lambda e: sum(isinstance(r, Released) for r in e) == 5, "five clicks")
    made = [s for s in steps(recorded.stop()) if s["action"]["type"] == "click"]
    assert len(made) == 5
    assert [colour(recorded, step["frame"]) for step in made] == COLOURS[:5]
    assert all(step["frame_gap_ms"] >= 0 for step in made)


def colour(recorded: Recorded, sha256: str) -> tuple[int, ...]:
    with Image.open(recorded.folder.frames / f"{sha256}.png") as picture:
        found = picture.convert("RGB").getpixel((600, 450))
    assert isinstance(found, tuple)
    return found
