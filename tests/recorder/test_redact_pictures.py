"""Text on pictures: misread, torn and broken over lines it is still found; what did not change is kept."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from recorder.redact import Line, Read, hidden, reader
from recorder.redact.screen.changed import changed
from tests.recorder.made_recording import found_by

JWT = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
needs_ocr = pytest.mark.skipif(
    importlib.util.find_spec("rapidocr_onnxruntime") is None,
    reason="needs tandem-recorder[ocr]",
)


def column(*texts: str) -> list[Line]:
    return [Line(text, (20, 20 + 20 * n, 8 * len(text), 16)) for n, text in enumerate(texts)]


@pytest.mark.parametrize(
    "text",
    [
        "key AKIAIOSFODNN7 EXAMPLE", "AKlAlOSFODNN7EXAMPLE", "sk -proj -4f9aXb7Qw2Lm8Rt5Yz 1Kc3Vn6Hd0Gs",
        "john. smith@example.com", "411l 111l 1111 1111", "DE89 37O4 0044 0532 0130 00", "DE89 3704 0044 0532 0130 00",
        "ey]zdWliOilxMjM0NTY3ODkwIn0dozjgNry", "passw0rd: x password: hunter2", "xK9mPq2v Lw8ZrT4bQ1",
        "aws_secret_access_key wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "+l (415) 555-267l",
        "pas swo rd : w9qkOuUJwNIl", "passwordl: Uvk!JCBlccEs", "Pas sword = !7Cfon9Hfksg",
        "maria. lopez@acme, co . uk", "o.brien(@acme.co.uk", "maria. lopez@uni -bonn.de",
    ],
)  # fmt: skip
def test_what_was_misread_is_found(text: str) -> None:
    assert hidden(column("Open the file", text, "and close it"), found_by()) == {
        column("", text)[1].box: hidden(column("", text), found_by()).popitem()[1]
    }


@pytest.mark.parametrize(
    "texts",
    [
        (JWT[:40], JWT[40:70], JWT[70:]), ("token xK9mPq2v", "Lw8ZrT4bQ1 and more"),
        ("mail to maria.lopez@exam", "ple.com for more"),
    ],
)  # fmt: skip
def test_a_token_that_is_broken_over_lines_is_found_whole(texts: tuple[str, ...]) -> None:
    lines = column("An ordinary line", *texts, "Another one")
    assert set(hidden(lines, found_by())) == {line.box for line in lines[1:-1]}


def test_a_label_and_its_value_beside_it_belong_together() -> None:
    label, value = Line("API key:", (20, 20, 60, 16)), Line("frog-on-a-log", (110, 20, 90, 16))
    far = Line("frog-on-a-log", (900, 20, 90, 16))
    assert set(hidden([label, value, far], found_by())) == {label.box, value.box}


@pytest.mark.parametrize(
    "text",
    [
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8", "commit9fceb02d0ae598e95dc970b74767f19372d61af8",
        "127.0.0.1:8000", "localhost", "0.0.0.0:5432", "::1", "192.168.1.10", "203.0.113.7", "2001:db8::1",
        "IMG_20240612_143210.jpg", "Screenshot 2024-06-12 at 14.32.10.png", "libstdc++6_12.2.0-14_amd64.deb",
        "5e4a3db4-1c2d-4e5f-8a9b-0c1d2e3f4a5b", "[12345.678901] usb 1-1: new device", "Version 1.2.3.4",
        "HelloWorld2024ReportFinal", "TestRunner2Configuration", "1700000000.123", "Invoice 2024-000123",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "git@github.com:owner/repo.git",
        "sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg==",
        "-rw-r--r-- 1 ada staff 126413 Nov 21 13:43 home.png", "Chromium 128.0.6613.119",
    ],
)  # fmt: skip
def test_an_ordinary_line_is_left_alone(text: str) -> None:
    assert hidden(column("Open the file", text, "IMG_20240613_090000.jpg"), found_by()) == {}
    assert found_by().clean(text) == text


@pytest.mark.parametrize("text", ["8.8.8.8", "fe80::a00:27ff:fe4e:66a1", "call (415) 555-2671"])
def test_addresses_and_numbers_of_somebody_are_not(text: str) -> None:
    assert hidden(column(text), found_by())


def test_a_box_of_what_changed_cuts_no_line() -> None:
    before = np.full((200, 400, 3), 255, np.uint8)
    after = before.copy()
    assert changed(before, after, []) == []
    after[64:70, 300:304] = 0
    (left, top, width, height) = changed(before, after, [(20, 60, 285, 18), (20, 120, 300, 18)])[0]
    assert left <= 20 and left + width >= 305 and top <= 60 and 78 <= top + height <= 110
    after[:] = 0
    assert changed(before, after, []) == [(0, 0, 400, 200)]
    for _ in range(20):  # by chance: nothing outside of the boxes differs
        rng = np.random.default_rng()
        after = before.copy()
        for x, y in rng.integers(0, 190, (5, 2)):
            after[y : y + 9, x : x + 9] = 7
        for left, top, width, height in changed(before, after, []):
            after[top : top + height, left : left + width] = 255
        assert (after == before).all()


def drawn(*rows: tuple[int, str]) -> np.ndarray:
    picture = Image.new("RGB", (500, 160), "white")
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(14)
    for top, text in rows:
        pen.text((12, top), text, font=font, fill="black")
    return np.asarray(picture)


@needs_ocr
def test_only_what_changed_is_read_again() -> None:
    by = reader()
    first = drawn((20, "An ordinary line"), (70, "key AKIAIOSFODNN7"))
    before = Read(first, by.read(first, None))
    marked = Read(first, tuple(Line(line.text + "!", line.box) for line in before.lines))
    second = drawn((20, "An ordinary line"), (70, "key AKIAIOSFODNN7EXAMPLE"))
    lines = by.read(second, marked)
    assert [line.text.replace(" ", "") for line in lines] == [
        "Anordinaryline!", "keyAKIAIOSFODNN7EXAMPLE",
    ]  # fmt: skip
    assert set(hidden(lines, found_by())) == {lines[1].box}
    gone = by.read(drawn((20, "An ordinary line")), Read(second, lines))
    assert [line.text for line in gone] == [lines[0].text]
