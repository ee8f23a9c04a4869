"""A small recording made by hand: a clean step, a password, a secret, a denied window, a clean step."""

from __future__ import annotations

import hashlib
import io
import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import soundfile
from PIL import Image, ImageDraw, ImageFont

from recorder.redact import Detectors, Line, Read, RedactionError
from recorder.redact import detectors as installed
from recorder.spool import Consent, Folder, Head, Screen, Task, new_id
from trajectory import recording as rec
from trajectory.recording import to_line

CANARY = "AKIAQ7CANARY7EXAMPLE"
PASSWORD = "correct-horse-Canary-9"
SIZE = (640, 360)
RATE = 16_000
EDITOR = (0, 0, 640, 360)
FIELD, NOTES = (40, 60, 300, 24), (40, 120, 500, 24)


@lru_cache(maxsize=1)
def found_by() -> Detectors:
    return installed()


class Reads:
    """A reader that sees the same lines on every picture."""

    name = "the same"

    def __init__(self, *lines: Line) -> None:
        self.lines, self.count = lines, 0

    def read(self, pixels: object, before: Read | None) -> tuple[Line, ...]:
        self.count += 1
        return self.lines


def no_reader() -> Reads:
    raise RedactionError("nothing that reads them is installed")


class Made:
    """Writes events with their files."""

    def __init__(self, root: Path) -> None:
        head = Head(
            id=new_id(), kind="demonstration", task=Task("7", "Write a note", "Write it and save it."),
            consent=Consent("1", 1.7e9), platform="linux-x11",
            screen=Screen(*SIZE, ((0, 0, *SIZE),), 1.0), wall_start=1.7e9, recorder_version="0.1.0",
        )  # fmt: skip
        self.folder = Folder.make(root, head)
        self.events: list[rec.Event] = []

    def frame(self, t: float, *texts: tuple[int, int, str], title: str = "Notes") -> str:
        picture = Image.new("RGB", SIZE, (246, 247, 250))
        draw = ImageDraw.Draw(picture)
        font = ImageFont.load_default(15)
        draw.rectangle((0, 0, SIZE[0], 30), fill=(60, 70, 110))
        draw.text((12, 6), title, fill="white", font=font)
        for left, top, width, height in (FIELD, NOTES):
            draw.rectangle(
                (left, top, left + width, top + height), fill="white", outline=(150, 150, 160)
            )
        for x, y, text in texts:
            draw.text((x, y), text, fill="black", font=font)
        draw.text((SIZE[0] - 70, SIZE[1] - 24), f"{t:.2f}", fill=(120, 120, 130), font=font)
        out = io.BytesIO()
        picture.save(out, "PNG")
        sha256 = hashlib.sha256(out.getvalue()).hexdigest()
        (self.folder.frames / f"{sha256}.png").write_bytes(out.getvalue())
        self.events.append(rec.FrameTaken(t, t - 0.02, sha256, *SIZE))
        return sha256

    def click(self, t: float, x: int, y: int) -> None:
        self.events += [rec.Pressed(t, x, y, "left"), rec.Released(t + 0.06, x, y, "left")]

    def type(self, t: float, text: str, every: float = 0.05) -> float:
        for character in text:
            self.events.append(rec.KeyPressed(t, character, character))
            self.events.append(rec.KeyReleased(t + 0.02, character))
            t += every
        return t

    def focus(
        self, t: float, name: str, box: tuple[int, int, int, int], password: bool | None
    ) -> None:
        self.events.append(rec.ElementSeen(t, "entry", name, box, focused=True, password=password))

    def sound(self, t: float, seconds: float, name: str) -> None:
        n = np.arange(int(seconds * RATE))
        loud = 6000 * (1 + 0.8 * np.sin(n / RATE * 5)) * np.sin(n * 0.19) + 50
        soundfile.write(self.folder.audio / name, loud.astype(np.int16), RATE, format="FLAC")
        self.events.append(rec.AudioWritten(t, name, len(n)))

    def done(self, words: list[dict[str, object]] | None = None) -> Folder:
        self.events.sort(key=lambda event: event.t)
        lines = "".join(to_line(event) + "\n" for event in self.events)
        self.folder.events.write_text(lines, "utf-8")
        if words:
            text = "".join(json.dumps(word) + "\n" for word in words)
            (self.folder.path / "words.jsonl").write_text(text, "utf-8")
        return self.folder


def word(began: float, text: str) -> dict[str, object]:
    return {"began": began, "ended": began + 0.4, "text": text, "confidence": 0.9, "by": "asr"}


def canary_recording(root: Path) -> Folder:
    """A secret that is typed, shown, in a title and spoken, and a password; clean work around both."""
    made = Made(root)
    made.events += [rec.ClockRead(0.0, 1.7e9), rec.WindowChanged(0.1, "gedit", "Notes", EDITOR)]
    made.frame(0.5)
    made.click(1.0, 300, 300)
    made.events.append(rec.ElementSeen(0.9, "button", "New", (280, 290, 60, 20)))
    made.frame(1.5)
    # A password, in a field that says so a moment after the first key.
    made.click(4.0, 60, 70)
    made.type(4.2, PASSWORD)
    made.focus(4.4, "Password", FIELD, True)
    made.frame(4.6, (44, 62, "secret dots"))
    made.frame(5.6, (44, 62, PASSWORD))
    # The canary, in an ordinary field.
    made.click(9.0, 60, 130)
    made.focus(9.1, "Notes", NOTES, False)
    end = made.type(9.5, CANARY)
    made.frame(10.0, (44, 122, CANARY[:10]))
    made.frame(end + 0.1, (44, 122, CANARY))
    made.frame(13.0, (44, 122, CANARY))
    made.click(14.0, 300, 300)
    # The canary in a title, and on the whole window.
    made.events.append(rec.WindowChanged(17.0, "gedit", f"{CANARY} - gedit", EDITOR))
    made.frame(17.3, (200, 200, CANARY), title=CANARY)
    made.click(18.0, 300, 310)
    made.events.append(rec.WindowChanged(20.0, "gedit", "Notes", EDITOR))
    made.focus(20.1, "Body", (40, 200, 500, 100), False)
    made.frame(22.0, (44, 202, ""))
    made.click(23.0, 100, 250)
    made.type(23.5, "hello world")
    made.frame(25.0, (44, 202, "hello world"))
    made.click(26.0, 300, 300)
    made.events.append(rec.Stopped(30.0))
    made.sound(0.0, 15.0, "a.flac")
    made.sound(15.0, 15.0, "b.flac")
    said = ["I", "save", "the", "note"]
    spoken = [word(1.0 + n * 0.5, text) for n, text in enumerate(said)]
    spoken += [word(27.0, "my"), word(27.4, "password"), word(27.8, "is"), word(28.2, CANARY)]
    return made.done(spoken)
