"""Made recordings of any length, written as a stream: work at a usual pace, pictures, spoken thoughts.

Nobody has to sit there for two hours. The rates are those of the people of the reduction benchmark: an
action every 3 s, a picture before it, pointer moves between, a sentence in every third piece of sound.
"""

from __future__ import annotations

import hashlib
import io
import random
import shutil
import struct
import subprocess
import tempfile
import wave
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from recorder.spool import Consent, Folder, Head, Screen, Task, new_id
from trajectory import recording as rec
from trajectory.recording import to_line

SIZE = (1280, 720)
ACTION_S = 3.0
PIECE_S, RATE = 10.0, 16_000
APPS = ("gedit", "firefox", "nautilus", "libreoffice")
NAMES = ("Save", "Reports", "Archive", "Search", "Billing", "Compose", "Filters", "Download")
WORDS = [
    "the",
    "meeting",
    "moves",
    "to",
    "ten",
    "and",
    "the",
    "report",
    "is",
    "on",
    "the",
    "shelf",
    "beside",
    "the",
    "window",
]

Samples = NDArray[np.int16]


def write(root: Path, minutes: float, *, seed: int = 1, voice: bool = True) -> Folder:
    """Write a recording below `root`; `voice` has espeak-ng speak, without it tones stand for words."""
    head = Head(
        id=new_id(), kind="demonstration", task=Task("", "A long day", "Work for a while."),
        consent=Consent("1", 1.7e9), platform="linux-x11",
        screen=Screen(*SIZE, ((0, 0, *SIZE),), 1.0), wall_start=1.7e9, recorder_version="0.1.0",
    )  # fmt: skip
    folder = Folder.make(root, head)
    with folder.events.open("w", encoding="utf-8") as out:
        for event in _events(folder, minutes * 60, random.Random(seed), voice):
            out.write(to_line(event) + "\n")
    return folder


def _events(folder: Folder, seconds: float, rng: random.Random, voice: bool) -> Iterator[rec.Event]:
    """Yield the events in order of time, and write what they name."""
    yield rec.ClockRead(0.0, 1.7e9)
    t, turn, piece = 0.5, 0, 0
    while t < seconds:
        if turn % 12 == 0:
            app = rng.choice(APPS)
            yield rec.WindowChanged(t, app, f"{app}, page {turn // 12}", (0, 0, *SIZE))
            yield rec.ElementSeen(
                t + 0.01, "text", f"Body {turn // 12}", (0, 100, *SIZE), True, False
            )
            yield rec.ClockRead(t + 0.02, 1.7e9 + t)
        yield rec.FrameTaken(t + 0.1, t + 0.06, _frame(folder, turn), *SIZE)
        end = t
        for event in _action(t + 0.3, turn, rng):
            end = event.t
            yield event
        while (piece + 1) * PIECE_S <= end:
            # A piece is written when it ends and stands at its beginning.
            yield _sound(folder, piece, rng, voice)
            piece += 1
        t, turn = max(t + ACTION_S * rng.uniform(0.7, 1.3), end + 0.2), turn + 1
    yield rec.Stopped(t)


def _action(t: float, turn: int, rng: random.Random) -> Iterator[rec.Event]:
    x, y = rng.randrange(50, 1200), rng.randrange(120, 700)
    for step in range(12):
        yield rec.Moved(t + step * 0.02, max(0, x - 12 + step), y)
    t += 0.3
    match rng.choices(("click", "type", "scroll", "chord"), (55, 25, 12, 8))[0]:
        case "click":
            name = f"{rng.choice(NAMES)} {turn}"
            yield rec.ElementSeen(t - 0.01, "button", name, (x - 30, y - 10, 60, 20))
            yield rec.Pressed(t, x, y, "left")
            yield rec.Released(t + 0.07, x, y, "left")
        case "type":
            for character in " ".join(rng.choices(WORDS, k=4)) + " ":
                yield rec.KeyPressed(t, "space" if character == " " else character, character)
                yield rec.KeyReleased(t + 0.03, "space" if character == " " else character)
                t += 0.06
        case "scroll":
            for step in range(4):
                yield rec.Scrolled(t + step * 0.05, x, y, 0, 1)
        case _:
            for key in ("ctrl", "s"):
                yield rec.KeyPressed(t, key, "")
                t += 0.03
            for key in ("s", "ctrl"):
                yield rec.KeyReleased(t, key)
                t += 0.03


def _frame(folder: Folder, turn: int) -> str:
    """Write a picture of its own: one of a few, with its number in a chunk of text."""
    data = _picture(turn % 8)
    body = b"tEXt" + b"turn\0" + str(turn).encode()
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    data = data[:-12] + chunk + data[-12:]  # before IEND
    sha256 = hashlib.sha256(data).hexdigest()
    (folder.frames / f"{sha256}.png").write_bytes(data)
    return sha256


@lru_cache(maxsize=8)
def _picture(number: int) -> bytes:
    picture = Image.new("RGB", SIZE, (246, 247, 250))
    draw = ImageDraw.Draw(picture)
    for line in range(40):
        shade = 40 + (line * 37 + number * 11) % 160
        draw.rectangle(
            (40, 20 + line * 17, 300 + (line * 97) % 900, 30 + line * 17), fill=(shade,) * 3
        )
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def _sound(folder: Folder, number: int, rng: random.Random, voice: bool) -> rec.AudioWritten:
    spoken = rng.random() < 1 / 3
    data = _piece(rng.randrange(len(NAMES)) if spoken else None, voice)
    name = f"{number:05d}.flac"
    (folder.audio / name).write_bytes(data)
    return rec.AudioWritten(
        number * PIECE_S, name, int(PIECE_S * RATE), silent=not spoken
    )  # fmt: skip


@lru_cache(maxsize=len(NAMES) + 1)
def _piece(sentence: int | None, voice: bool) -> bytes:
    samples = np.zeros(int(PIECE_S * RATE), np.int16)
    if sentence is not None:
        said = (
            spoken(f"Now I click on {NAMES[sentence]}, then I look.") if voice else _tone(sentence)
        )
        said = said[: len(samples) - RATE]
        samples[RATE : RATE + len(said)] = said
    out = io.BytesIO()
    soundfile.write(out, samples, RATE, format="FLAC")
    return out.getvalue()


def spoken(text: str) -> Samples:
    """Return a sentence spoken by espeak-ng, 16 kHz mono."""
    if not shutil.which("espeak-ng"):
        raise SystemExit("espeak-ng is missing: apt-get install espeak-ng")
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        subprocess.run(["espeak-ng", "-v", "en-us", "-w", file.name, text], check=True, timeout=60)
        with wave.open(file.name) as sound:
            rate = sound.getframerate()
            pcm = np.frombuffer(sound.readframes(sound.getnframes()), "<i2")
    at = np.arange(0, len(pcm), rate / RATE)
    return np.interp(at, np.arange(len(pcm)), pcm).astype(np.int16)


def _tone(number: int) -> Samples:
    at = np.arange(3 * RATE)
    return (8000 * np.sin(at * 0.02 * (number + 2)) * np.sin(at / 3000)).astype(np.int16)
