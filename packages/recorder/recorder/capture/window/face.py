"""The small window as a picture: what it says, and which button lies where. Pure, by Pillow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont

Box = tuple[int, int, int, int]
Colour = tuple[int, int, int]

_WIDE, _HIGH, _DOT = 320, 78, 30
_FINER = 4  # edges are drawn this much larger and made small: smooth
_ROUND = 10
BUTTONS: dict[str, Box] = {
    "pause": (10, 34, 106, 70), "mark": (112, 34, 208, 70), "stop": (214, 34, 310, 70),
    "collapse": (286, 4, 314, 30),
}  # fmt: skip
"""Left, top, right and bottom of each in the open window of scale 1."""
_KEYS = {"pause": "Ctrl+Alt+P", "mark": "Ctrl+Alt+M", "stop": "Ctrl+Alt+S"}
_BAR = (196, 12, 280, 22)
LEVELS = 12
"""Steps of the bar that shows how loud the voice is."""
_LOUD, _TOO_LOUD = (88, 205, 120), (250, 190, 70)


@dataclass(frozen=True, slots=True)
class _Paint:
    ground: Colour
    edge: Colour
    text: Colour
    faint: Colour
    button: Colour
    down: Colour
    sign: Colour


_RECORDING = _Paint(
    (28, 31, 38), (74, 80, 94), (245, 246, 248), (182, 189, 202), (54, 60, 72), (84, 92, 110),
    (244, 63, 75),
)  # fmt: skip
_PAUSED = _Paint(
    (246, 172, 20), (122, 80, 0), (26, 18, 0), (74, 50, 0), (255, 207, 104), (255, 228, 166),
    (26, 18, 0),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Face:
    """What the window says: `seconds` were recorded, `level` of LEVELS is heard (None: no microphone),
    `silent_s` seconds of silence (0: not worth a word), `note` is a word of the moment."""

    paused: bool = False
    seconds: int = 0
    level: int | None = None
    silent_s: int = 0
    note: str = ""
    down: str = ""
    collapsed: bool = False


def size(*, collapsed: bool, scale: float) -> tuple[int, int]:
    """Return width and height in pixels."""
    wide, high = (_DOT, _DOT) if collapsed else (_WIDE, _HIGH)
    return round(wide * scale), round(high * scale)


def pressed_at(x: float, y: float, face: Face, scale: float) -> str:
    """Return the button at a place of the window, "" for none."""
    if face.collapsed:
        return ""
    for name, (left, top, right, bottom) in BUTTONS.items():
        if left <= x / scale < right and top <= y / scale < bottom:
            return "" if name == "mark" and face.paused else name
    return ""


@lru_cache(maxsize=4)
def outline(collapsed: bool, scale: float) -> tuple[Box, ...]:
    """Return the window's rounded shape as one box (left, top, width, height) a row."""
    wide, high = size(collapsed=collapsed, scale=scale)
    mask = Image.new("L", (wide * _FINER, high * _FINER), 0)
    radius = (wide / 2 if collapsed else _ROUND * scale) * _FINER
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, mask.width - 1, mask.height - 1), radius, 255)
    small = mask.resize((wide, high), Image.Resampling.BOX).point(lambda v: 255 * (v > 127))
    rows = []
    for y in range(high):
        box = small.crop((0, y, wide, y + 1)).getbbox()
        if box:
            rows.append((box[0], y, box[2] - box[0], 1))
    return tuple(rows)


def draw(face: Face, scale: float) -> Image.Image:
    """Return the window's picture, RGB."""
    paint = _PAUSED if face.paused else _RECORDING
    picture = _ground(face.paused, face.down, face.collapsed, scale).copy()
    if face.collapsed:
        return picture
    pen = ImageDraw.Draw(picture)

    def write(x: float, y: float, text: str, points: float, colour: Colour, anchor: str) -> None:
        pen.text((x * scale, y * scale), text, colour, _font(points * scale), anchor=anchor)

    if face.paused:
        words = face.note or "Paused: nothing is recorded"
        text, points = fitting(words, BUTTONS["collapse"][0] - 32)
        write(32, 17, text, points, paint.text, "lm")
    else:
        text, points = fitting(face.note or "Recording", _BAR[0] - 32 - 8)
        write(32, 17, text, points, paint.text, "lm")
        if not face.note:
            write(116, 17, clock(face.seconds), 15, paint.text, "lm")
        _voice(pen, face, paint, scale)
    labels = {"pause": "Go on" if face.paused else "Pause", "mark": "Marker", "stop": "Stop"}
    for name, label in labels.items():
        left, top, right, _ = BUTTONS[name]
        off = name == "mark" and face.paused
        middle = (left + right) / 2
        write(middle, top + 12.5, label, 14, paint.faint if off else paint.text, "mm")
        write(middle, top + 27, _KEYS[name], 11, paint.faint, "mm")
    return picture


def fitting(text: str, wide: float) -> tuple[str, float]:
    """Return a text and the size at which it is no wider, cut where it would be too small to read."""
    for points in (15.0, 13.0, 12.0):
        if _font(points).getlength(text) <= wide:
            return text, points
    while text and _font(12.0).getlength(f"{text}…") > wide:
        text = text[:-1]
    return f"{text}…", 12.0


def clock(seconds: int) -> str:
    hours, minutes = seconds // 3600, seconds // 60 % 60
    return f"{hours}:{minutes:02}:{seconds % 60:02}" if hours else f"{minutes}:{seconds % 60:02}"


def _voice(pen: ImageDraw.ImageDraw, face: Face, paint: _Paint, scale: float) -> None:
    left, top, right, bottom = _BAR
    if face.level is None or face.silent_s:
        words = "no microphone" if face.level is None else f"silent for {silence(face.silent_s)}"
        place = (right * scale, (top + bottom) / 2 * scale)
        pen.text(place, words, paint.faint, _font(12 * scale), anchor="rm")
        return
    step = (right - left) / LEVELS
    for n in range(LEVELS):
        x = left + n * step
        lit = n < face.level
        loud = _LOUD if n < LEVELS - 2 else _TOO_LOUD
        pen.rectangle(
            (x * scale, top * scale, (x + step - 2.2) * scale, bottom * scale),
            fill=loud if lit else paint.button,
        )


def silence(seconds: int) -> str:
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"


@lru_cache(maxsize=24)
def _ground(paused: bool, down: str, collapsed: bool, scale: float) -> Image.Image:
    """Return what does not change from second to second: ground, edges, buttons."""
    paint = _PAUSED if paused else _RECORDING
    wide, high = size(collapsed=collapsed, scale=scale)
    large = Image.new("RGB", (wide * _FINER, high * _FINER), paint.ground)
    pen = ImageDraw.Draw(large)
    unit = scale * _FINER
    whole = (0, 0, large.width - 1, large.height - 1)
    radius = large.width / 2 if collapsed else _ROUND * unit
    pen.rectangle(whole, fill=paint.edge)
    pen.rounded_rectangle(whole, radius, paint.ground, paint.edge, round(1.2 * unit))
    middle = (_DOT / 2, _DOT / 2) if collapsed else (20, 17)
    _sign(pen, middle, paused, paint, unit, 7 if collapsed else 5.5)
    if not collapsed:
        for name, box in BUTTONS.items():
            if name != "collapse":
                colour = paint.down if name == down else paint.button
                pen.rounded_rectangle([v * unit for v in box], 6 * unit, colour)
        left, top, right, bottom = BUTTONS["collapse"]
        x, y = (left + right) / 2, (top + bottom) / 2
        line = [v * unit for v in (x - 6, y - 1, x + 6, y + 1)]
        pen.rounded_rectangle(line, unit, paint.text if down == "collapse" else paint.faint)
    return large.resize((wide, high), Image.Resampling.BOX)


def _sign(
    pen: ImageDraw.ImageDraw, middle: tuple[float, float], paused: bool, paint: _Paint,
    unit: float, reach: float,
) -> None:  # fmt: skip
    """Draw a dot while recording, two bars while paused."""
    x, y = middle
    if not paused:
        pen.ellipse([v * unit for v in (x - reach, y - reach, x + reach, y + reach)], paint.sign)
        return
    for left in (x - reach * 0.8, x + reach * 0.2):
        pen.rectangle(
            [v * unit for v in (left, y - reach, left + reach * 0.6, y + reach)], paint.sign
        )


@lru_cache(maxsize=12)
def _font(points: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(points)
