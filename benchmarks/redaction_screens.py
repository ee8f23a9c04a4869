"""Made screens with secrets at known places, and ordinary ones without."""

from __future__ import annotations

import html
import io
import random
import shutil
import string
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

Pixels = np.ndarray[Any, np.dtype[np.uint8]]
KINDS = ("AWS key", "API key", "JWT", "e-mail", "card", "phone", "IBAN", "AWS secret", "password")
SIZES = (10, 11, 12, 13, 14)
WIDE, HIGH = 1280, 720
_FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans{}.ttf"
_ALNUM = string.ascii_letters + string.digits
_LINES = """Edit the invoice and send it before noon
drwxr-xr-x 20 ada staff   4096 Nov 22 03:34 suite
commit 9fceb02d0ae598e95dc970b74767f19372d61af8
Author date: 2024-06-12 14:32:10 +0200
index 3f2a1b4..9c8d7e6 100644
def take(self, event: Event) -> list[Hit]:
Chromium 128.0.6613.119 on 1280x720, 24 bit
http://127.0.0.1:8000/admin/ listens on 0.0.0.0
192.168.1.10 answers in 0.42 ms
report-2024-final-v3.pdf  1.2 MB  Yesterday 10:14
Total 1,234,567.89 EUR, of that 19 % tax
libstdc++6_12.2.0-14_amd64.deb is already the newest version
IMG_20240612_143210.jpg  Screenshot 2024-06-12 at 14.32.10.png
[12345.678901] usb 1-1: new high-speed USB device number 4
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
File Edit View Search Terminal Help
Inbox (12)   Sent   Drafts   Archive   Settings
TestRunner2Configuration.setUp took 1700000000.123
tests/recorder/test_redact.py::test_the_list_is_written_once PASSED [ 42%]
5e4a3db4-1c2d-4e5f-8a9b-0c1d2e3f4a5b
New Tab   Extensions   Downloads   Bookmarks
Order 4711-0815, room 12.34, invoice 2024-000123
Password:  Token count: 512   Sign in   Forgot it?
Version 1.2.3.4 of Tue Jun 12 2024""".splitlines()


class Secret(NamedTuple):
    """A secret on a screen: `box` is (left, top, width, height) of its letters."""

    kind: str
    text: str
    px: int
    box: tuple[int, int, int, int]


class Screen(NamedTuple):
    """A picture (height, width, 3), what drew it, and what it shows that must be found."""

    pixels: Pixels
    by: str
    secrets: list[Secret]


def made(kind: str, draw: random.Random) -> tuple[str, str]:
    """Return (what stands before it, a secret of a kind), by chance."""
    pick = lambda letters, n: "".join(draw.choice(letters) for _ in range(n))  # noqa: E731
    match kind:
        case "AWS key":
            return "", "AKIA" + pick(string.ascii_uppercase + "234567", 16)
        case "API key":
            begin, n = draw.choice(
                [("sk-proj-", 32), ("ghp_", 36), ("glpat-", 20), ("", 32), ("xoxb-", 40)]
            )
            return "", begin + pick(_ALNUM, n)
        case "JWT":
            return "", f"eyJ{pick(_ALNUM, 33)}.eyJ{pick(_ALNUM, 27)}.{pick(_ALNUM + '_-', 24)}"
        case "e-mail":
            name = draw.choice(["maria.lopez", "j.smith", "ada", "chen_wei88", "o.brien"])
            return (
                "",
                f"{name}@{draw.choice(['gmail.com', 'example.org', 'uni-bonn.de', 'acme.co.uk'])}",
            )
        case "card":
            body = [int(c) for c in draw.choice(["4", "51", "37"]) + pick(string.digits, 15)][:15]
            double = [2 * d - 9 * (2 * d > 9) if n % 2 == 0 else d for n, d in enumerate(body)]
            text = "".join(map(str, body)) + str(-sum(double) % 10)
            return "", " ".join(text[n : n + 4] for n in range(0, 16, 4))
        case "phone":
            end = f"{draw.randrange(200, 999)}-{draw.randrange(1000, 9999)}"
            return "", draw.choice(
                [f"+1 (415) {end}", f"(212) {end}", "+49 30 " + pick(string.digits[1:], 8)]
            )
        case "IBAN":
            digits = pick(string.digits, 18)
            check = 98 - int(f"{digits}131400") % 97
            text = f"DE{check:02}{digits}"
            return "", " ".join(text[n : n + 4] for n in range(0, 22, 4))
        case "AWS secret":
            return "aws_secret_access_key = ", pick(_ALNUM + "/+", 40)
        case _:
            return draw.choice(["password: ", "Password = ", "export DB_PASSWORD="]), pick(
                _ALNUM + "!#-", 12
            )


def _placed(seed: int) -> tuple[random.Random, list[tuple[int, int, int, str, str, str]]]:
    """Return (left, top, size, kind, before, text) of the lines of a screen; "" for ordinary ones."""
    draw, lines, top = random.Random(seed), [], 12
    kinds = [(kind, px) for kind in KINDS for px in SIZES]
    draw.shuffle(kinds)
    for kind, px in kinds[:22]:
        lines.append((14, top, px, kind, *made(kind, draw)))
        if kind != "JWT" or px < 12:
            lines.append((860, top, px, "", "", draw.choice(_LINES)[:52]))
        top += px + 18
    return draw, lines


def _colours(dark: bool) -> tuple[str, str]:
    return ("#16181f", "#d8dce6") if dark else ("#ffffff", "#1c1e26")


def by_pillow(many: int, first: int = 0) -> Iterator[Screen]:
    for seed in range(first, first + 2 * many):
        paper, ink = _colours(seed % 2 == 1)
        picture = Image.new("RGB", (WIDE, HIGH), paper)
        pen, secrets = ImageDraw.Draw(picture), []
        draw, lines = _placed(seed)
        for left, top, px, kind, before, text in lines:
            font = ImageFont.truetype(_FONT.format("Mono" if draw.random() < 0.5 else ""), px)
            pen.text((left, top), before + text, font=font, fill=ink)
            if kind:
                x = left + int(font.getlength(before))
                secrets.append(Secret(kind, text, px, (x, top, int(font.getlength(text)), px + 4)))
        yield Screen(np.asarray(picture), f"Pillow, {'dark' if seed % 2 else 'light'}", secrets)


def by_chromium(many: int, first: int = 0) -> Iterator[Screen]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        print("without Chromium: its screens are left out")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDE, "height": HIGH})
        for seed in range(first + 100, first + 100 + 2 * many):
            paper, ink = _colours(seed % 2 == 1)
            draw, lines = _placed(seed)
            rows = "".join(
                f"<div style='left:{left}px;top:{top}px;font:{px}px {draw.choice(['monospace', 'sans-serif', 'serif'])}'>"
                f"{html.escape(before)}<span>{html.escape(text)}</span></div>"
                for left, top, px, _, before, text in lines
            )
            page.set_content(
                f"<style>body{{background:{paper};color:{ink}}}div{{position:fixed;white-space:pre}}</style>{rows}"
            )
            boxes = page.eval_on_selector_all(
                "span",
                "all => all.map(s => { const b = s.getBoundingClientRect(); return [b.x, b.y, b.width, b.height] })",
            )
            shot = np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))
            secrets = [
                Secret(kind, text, px, (int(b[0]), int(b[1]), int(b[2]), int(b[3])))
                for (_, _, px, kind, _, text), b in zip(lines, boxes, strict=True) if kind
            ]  # fmt: skip
            yield Screen(shot, f"Chromium, {'dark' if seed % 2 else 'light'}", secrets)
        browser.close()


def ordinary(many: int) -> Iterator[Screen]:
    """Yield screens as one has them all day: nothing of theirs is to be hidden."""
    for seed in range(2 * many):
        draw = random.Random(seed)
        yield Screen(_page(draw, seed % 2 == 1), "ordinary", [])


def _page(draw: random.Random, dark: bool, first: int = 0, typed: str = "") -> Pixels:
    paper, ink = _colours(dark)
    picture = Image.new("RGB", (WIDE, HIGH), paper)
    pen = ImageDraw.Draw(picture)
    order = [*_LINES, *_LINES]
    draw.shuffle(order)
    mono = ImageFont.truetype(_FONT.format("Mono"), 13)
    sans = ImageFont.truetype(_FONT.format(""), 13)
    for n, line in enumerate(order[first : first + 30]):
        pen.text((20, 20 + 22 * n), line, font=mono if len(line) % 2 else sans, fill=ink)
    pen.text((20, 690), typed, font=ImageFont.truetype(_FONT.format(""), 14), fill=ink)
    return np.asarray(picture)


def work(many: int) -> Iterator[Pixels]:
    """Yield the pictures of somebody who types, scrolls, opens a dialog and changes the window."""
    text = "Dear Ada, the numbers of the last quarter are in the sheet below."
    for n in range(0, len(text), max(1, 12 // many)):
        yield _page(random.Random(7), False, typed=text[:n])
    for first in range(1, 1 + 2 * many):
        yield _page(random.Random(7), False, first, text)
    dialog = Image.fromarray(_page(random.Random(7), False, 0, text))
    pen = ImageDraw.Draw(dialog)
    pen.rectangle((400, 250, 880, 460), fill="#f2f3f7", outline="#888888")
    for n, words in enumerate(
        (
            "Save the changes to the document?",
            "If you do not save them they are lost.",
            "Discard    Cancel    Save",
        )
    ):
        pen.text(
            (430, 280 + 50 * n),
            words,
            font=ImageFont.truetype(_FONT.format(""), 15),
            fill="#1c1e26",
        )
    other = _page(random.Random(8), True)
    for _ in range(many):
        yield np.asarray(dialog)
        yield other
