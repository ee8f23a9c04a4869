"""The guard trips on what matters near the target and on nothing else."""

from __future__ import annotations

import io

from PIL import Image, ImageDraw

from annotation.session.screens import changed, places
from trajectory import Click, Drag, Hotkey


def screen(*boxes: tuple[int, int, int, int], colour: str = "black") -> bytes:
    image = Image.new("RGB", (400, 300), "white")
    draw = ImageDraw.Draw(image)
    draw.rectangle((100, 100, 160, 130), fill="#dddddd")
    for box in boxes:
        draw.rectangle(box, fill=colour)
    target = io.BytesIO()
    image.save(target, "PNG")
    return target.getvalue()


def test_the_same_screen_has_not_changed() -> None:
    assert changed(screen(), screen(), [(120, 115)]) is None


def test_a_blinking_caret_at_the_target_is_no_change() -> None:
    assert changed(screen(), screen((120, 105, 121, 127)), [(120, 115)]) is None


def test_a_clock_elsewhere_is_no_change() -> None:
    assert changed(screen(), screen((300, 0, 399, 40)), [(120, 115)]) is None


def test_a_button_that_moved_is_a_change() -> None:
    moved = screen((100, 100, 160, 130), (100, 140, 160, 170), colour="white")
    assert changed(screen(), moved, [(130, 115)]) == (130, 115)


def test_a_dialog_over_the_target_is_a_change() -> None:
    assert changed(screen(), screen((90, 80, 220, 180)), [(10, 10), (120, 115)]) == (
        120,
        115,
    )


def test_a_faint_hover_tint_is_no_change() -> None:
    assert changed(screen(), screen((100, 100, 160, 130), colour="#cccccc"), [(120, 115)]) is None


def test_a_drag_depends_on_both_its_ends_and_keys_on_none() -> None:
    assert places(Drag(((1, 2), (5, 5), (9, 9)))) == ((1, 2), (9, 9))
    assert places(Click(3, 4)) == ((3, 4),)
    assert places(Hotkey(("enter",))) == ()
