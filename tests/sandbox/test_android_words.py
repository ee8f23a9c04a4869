"""What is said to a phone, and what is read from it: no device."""

from __future__ import annotations

import io
import queue
import re
import shlex
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sandbox.provider import ProvisionFailed
from sandbox.providers.android import devices, gestures, tree
from sandbox.providers.android.apps import is_package
from sandbox.providers.android.phone import Phone
from sandbox.providers.android.touch import View

SCREEN = gestures.Screen(1080, 2400)


def _entered(lines: list[str]) -> str:
    """Return what a phone enters for `lines`, as AOSP's InputShellCommand reads them."""
    text = ""
    for line in lines:
        _, kind, word = shlex.split(line)
        text += {"66": "\n", "61": "\t"}[word] if kind == "keyevent" else word.replace("%s", " ")
    return text


@given(st.text(alphabet=[chr(c) for c in range(0x20, 0x7F)] + ["\n", "\t"], max_size=1200))
def test_text_of_a_keyboard_arrives_as_it_is(text: str) -> None:
    lines = gestures.typing(text)
    assert _entered(lines) == text
    assert all(len(line) < 2500 for line in lines)


def test_only_a_keyboards_text_is_plain() -> None:
    assert gestures.plain("a~\n\t")
    assert not gestures.plain("é")
    assert not gestures.plain("\x1b")


@given(
    st.integers(0, 1079), st.integers(0, 2399), st.integers(-20, 20), st.integers(-20, 20)
)  # fmt: skip
def test_a_scroll_goes_its_way_and_stays_on_the_screen(x: int, y: int, dx: int, dy: int) -> None:
    moved = [0, 0]
    for swipe in SCREEN.scroll(x, y, dx, dy).split(" && "):
        if swipe == "true":
            continue
        x1, y1, x2, y2, _ = map(int, swipe.split()[2:])
        assert all(0 <= x < 1080 for x in (x1, x2)) and all(0 <= y < 2400 for y in (y1, y2))
        moved[0] += x1 - x2
        moved[1] += y1 - y2
    assert moved == [abs(dx) * 108 * (dx > 0) - abs(dx) * 108 * (dx < 0), dy * 240]


def test_what_a_finger_cannot_do_is_named() -> None:
    with pytest.raises(ValueError, match="outside the screen"):
        SCREEN.tap(1080, 0, button="left", count=1, modifiers=())
    with pytest.raises(ValueError, match="finger has one button"):
        SCREEN.tap(1, 1, button="right", count=1, modifiers=())
    with pytest.raises(ValueError, match="notches"):
        SCREEN.scroll(1, 1, 0, 101)
    with pytest.raises(ValueError, match="no key 'é'"):
        gestures.keys(("é",))


def test_the_keys_of_a_phone() -> None:
    assert gestures.keys(("home",)) == "input keyevent 3"
    assert gestures.keys(("alt", "tab")) == "input keyevent 187"
    assert gestures.keys(("ctrl", "a")) == "input keycombination 113 29"
    assert gestures.keys(("f12",)) == "input keyevent 142"
    assert SCREEN.drag(((1, 2), (3, 4))) == "input swipe 1 2 3 4 600"
    path = SCREEN.drag(((1, 2), (3, 4), (5, 6)))
    assert re.findall(r"DOWN|MOVE|UP", path) == ["DOWN", "MOVE", "MOVE", "UP"]


NODE = '<hierarchy><node class="android.widget.{}" bounds="[{}][{}]" {}/></hierarchy>'


def _one(*parts: str) -> list[tuple[str, str, str]]:
    found = tree.elements(NODE.format(*parts).encode(), width=100, height=100)
    return [(e.role, e.name, e.value) for e in found]


def test_nodes_become_elements() -> None:
    assert _one("Button", "1,2", "30,40", 'text="Send"') == [("button", "Send", "")]
    field = 'text="typed" resource-id="a:id/to_field"'
    assert _one("EditText", "1,2", "30,40", field) == [("textbox", "to field", "typed")]
    secret = 'text="hunter2" password="true" content-desc="PIN"'
    assert _one("EditText", "1,2", "30,40", secret) == [("textbox", "PIN", "")]
    switch = 'text="Wi-Fi" checkable="true" checked="true"'
    assert _one("Switch", "1,2", "30,40", switch) == [("switch", "Wi-Fi", "on")]
    assert _one("FrameLayout", "1,2", "30,40", "") == []  # nothing to say, nothing to do
    assert _one("Button", "200,2", "300,40", 'text="off the screen"') == []


@pytest.mark.parametrize(
    "xml",
    [
        b'<!DOCTYPE a [<!ENTITY x "' + b"y" * 99 + b'">]><a>&x;</a>',
        b"<node>" * 1000,
        b"\0 no tree",
        b"x" * (tree.MOST_BYTES + 1),
    ],
)
def test_a_hostile_tree_is_refused(xml: bytes) -> None:
    with pytest.raises(tree.TreeError):
        tree.elements(xml, width=100, height=100)


def test_a_tree_of_many_nodes_is_cut() -> None:
    node = '<node class="a.Button" text="{}" bounds="[0,0][9,9]"/>'.format("n" * 9000)
    xml = f"<hierarchy>{node * 400}</hierarchy>".encode()
    found = tree.elements(xml, width=100, height=100)
    assert len(found) == 400 and len(found[0].name) == 2000
    many = f"<hierarchy>{node.replace('n' * 9000, 'n') * 3000}</hierarchy>".encode()
    assert len(tree.elements(many, width=100, height=100)) == tree.MOST_ELEMENTS


@given(st.binary(max_size=400))
def test_any_bytes_are_a_tree_or_refused(data: bytes) -> None:
    try:
        tree.elements(data, width=100, height=100)
    except tree.TreeError:
        pass


def test_packages_are_told_from_programs() -> None:
    assert is_package("com.example.app") and is_package("com.example.app/.Main")
    assert not is_package("xterm") and not is_package("a.b; rm") and not is_package("a.b/c d")


def test_the_list_of_phones(tmp_path) -> None:
    file = tmp_path / "devices.toml"
    with pytest.raises(ProvisionFailed, match="no phone is listed: write"):
        devices.load(file)
    for text, said in (
        ("x = ", "no TOML"),
        ("x = 1", r"lists no \[\[device\]\]"),
        ('[[device]]\nserial = "-x"', "no serial"),
        ('[[device]]\nserial = "a"\npin = 1', "only the keys"),
        ('[[device]]\nserial = "a"\n[[device]]\nserial = "a"', "twice"),
    ):
        file.write_text(text)
        with pytest.raises(ProvisionFailed, match=said):
            devices.load(file)
    file.write_text('[[device]]\nserial = "emulator-5554"\nsnapshot = "clean"')
    assert devices.load(file).devices == (devices.Device("emulator-5554", "clean"),)


def test_a_view_goes_on_after_a_picture_that_cannot_be_read() -> None:
    whole, seen = io.BytesIO(), queue.Queue[bytes]()
    Image.new("RGB", (36, 64), "red").save(whole, "PNG")
    turned = io.BytesIO()
    Image.new("RGB", (64, 36)).save(turned, "PNG")
    bomb = turned.getvalue()[:16] + struct.pack(">II", 60_000, 60_000) + turned.getvalue()[24:]
    pictures = iter([b"half a picture", bomb, turned.getvalue()])

    class Shown(Phone):
        width, height = 36, 64

        def __init__(self) -> None: ...

        def png(self) -> bytes:
            return next(pictures, whole.getvalue())

    view = View(Shown())
    view.watch(seen.put)
    with Image.open(io.BytesIO(seen.get(timeout=60))) as picture:
        assert picture.size == (36, 64)
    view.unwatch(seen.put)
