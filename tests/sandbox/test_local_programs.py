"""What a local desktop's programs say and play: the accessibility tree, and sound without a card."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from guest.accessibility import _CHECKED, _EDITABLE, _element
from sandbox.capabilities import Accessibility
from sandbox.provider import Desktop, SandboxSpec
from sandbox.providers.local import LocalProvider
from tests.sandbox.desktops import needs_local, new_id
from trajectory import Click, Element, Type

pytestmark = needs_local

TONE = """
import math, struct, subprocess
wave = b''.join(struct.pack('<h', int(9000 * math.sin(n / 10))) for n in range(44100))
subprocess.run(['pacat', '--raw', '--channels=1'], input=wave)
"""
HEAR = """
parec --raw --channels=1 -d desk.monitor > heard.raw & hearing=$!
while [ ! -s heard.raw ]; do sleep 0.05; done
python3 tone.py; kill $hearing
"""


@pytest.fixture(scope="module")
def desktop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desktop]:
    provider = LocalProvider(tmp_path_factory.mktemp("sb"))
    handle = provider.start(SandboxSpec("programs"))
    desktop = provider.connect(handle)
    desktop.fence(1)
    yield desktop
    desktop.close()
    provider.stop(handle)


def _until(look: Callable[[], Element | None], *, seconds: float = 30) -> Element:
    deadline = time.monotonic() + seconds
    while (found := look()) is None:
        assert time.monotonic() < deadline, "it did not appear"
        time.sleep(0.05)
    return found


def _named(desktop: Desktop, role: str, name: str) -> Callable[[], Element | None]:
    def look() -> Element | None:
        seen = desktop.observe(elements=True).elements or ()
        return next((e for e in seen if (e.role, e.name) == (role, name)), None)

    return look


def test_the_window_in_front_is_read_and_used(desktop: Desktop) -> None:
    assert isinstance(desktop, Accessibility)
    desktop.launch(["mousepad"], epoch=1, action_id=new_id())
    menu = _until(_named(desktop, "menu", "File"))
    field = _until(_named(desktop, "textbox", ""))
    desktop.perform(Click(*field.centre), epoch=1, action_id=new_id())
    desktop.perform(Type("Grüße"), epoch=1, action_id=new_id())
    _until(
        lambda: next(
            (
                e
                for e in desktop.observe(elements=True).elements or ()
                if e.value == "Grüße" and e.focused
            ),
            None,
        )
    )
    desktop.perform(Click(*menu.centre), epoch=1, action_id=new_id())
    _until(_named(desktop, "menuitem", "New"))
    assert len(desktop.accessibility(limit=3)) == 3
    assert any(e.name == "File" for e in desktop.accessibility())


def test_what_programs_play_can_be_heard(desktop: Desktop) -> None:
    def run(command: str) -> str:
        return desktop.shell(command, epoch=1, action_id=new_id()).output

    _until(
        lambda: (
            Element("source", "", (0, 0, 0, 0))
            if "desk.monitor" in run("pactl list short sources")
            else None
        )
    )
    desktop.write_file("tone.py", TONE.encode(), epoch=1)
    run(HEAR)
    data = desktop.read_file("heard.raw")
    heard = memoryview(data[: len(data) // 2 * 2]).cast("h")
    assert max(heard) > 5000


def test_hostile_answers_make_no_elements() -> None:
    shown, box = frozenset((25,)), [(1, 2, 3, 4)]
    assert _element("push button", "OK", box, "", shown) == Element("button", "OK", (1, 2, 3, 4))
    assert _element("push button", "OK", None, "", shown) is None
    assert _element("push button", "OK", [(1, 2, 0, 4)], "", shown) is None
    assert _element("push button", "OK", [(1 << 31, 2, 3, 4)], "", shown) is None
    assert _element("filler", "OK", box, "", shown) is None
    secret = _element("password text", "PIN", box, "hunter2", shown | {_EDITABLE})
    assert secret is not None and secret.value == ""
    ticked = _element("check box", "Wrap", box, "", shown | {_CHECKED})
    assert ticked is not None and ticked.value == "on"
