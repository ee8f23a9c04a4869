"""Text of every script typed into a GTK program: what it holds is what was typed."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from sandbox.capabilities import Clipboard, Windows
from sandbox.provider import ActionResult, Desktop
from tests.sandbox.desktops import needs_local, new_id
from trajectory import Action, Hotkey, Type

pytestmark = needs_local
TEXTS = [
    "a < b > c <<>> </tag>",
    "漢字かな交じり文、한국어 텍스트，简体中文。",
    "👍🏽 🎉 👩‍💻 🏳️‍🌈 1️⃣",
    "e\u0301 n\u0303 a\u0308\u0323 क्षि กำ",
    "שלום עולם, مرحبا بالعالم \u200fRTL\u200e",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𠜎𠜱 ﷽ \u00a0\u2003\u00ad",
]


def test_every_script_arrives_as_typed(
    booted: Desktop, epoch: int, do: Callable[[Action], ActionResult]
) -> None:
    assert isinstance(booted, Clipboard)
    assert isinstance(booted, Windows)
    booted.launch(["mousepad"], epoch=epoch, action_id=new_id())
    deadline = time.monotonic() + 60
    while not [w for w in booted.windows() if w.active and "mousepad" in w.program]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    booted.settle(quiet_ms=300, max_ms=8000)
    for text in TEXTS:
        do(Hotkey(("ctrl", "a")))
        do(Type(text))
        booted.settle(quiet_ms=200, max_ms=5000)
        do(Hotkey(("ctrl", "a")))
        do(Hotkey(("ctrl", "c")))
        while booted.clipboard() != text:
            if time.monotonic() > deadline:
                pytest.fail(f"{text!r} arrived as {booted.clipboard()!r}")
            time.sleep(0.05)
