"""A real input method in a real editor: what is recorded is what came into the text."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jeepney import message_bus
from jeepney.io.blocking import open_dbus_connection

from tests.recorder.conftest import Hand, Recorded, needs_x, program, to_front
from tests.waiting import until
from trajectory import Hotkey, Type
from trajectory.hand import reduce
from trajectory.recording import Committed, ElementSeen, Event, KeyPressed

Record = Callable[..., Recorded]
METHOD = Path("/usr/share/fcitx5/inputmethod/chewing.conf")
PROFILE = """[Groups/0]
Name=Default
Default Layout=us
DefaultIM=chewing
[Groups/0/Items/0]
Name=keyboard-us
[Groups/0/Items/1]
Name=chewing
[GroupOrder]
0=Default
"""

pytestmark = [
    needs_x,
    pytest.mark.skipif(
        any(shutil.which(name) is None for name in ("fcitx5", "mousepad", "dbus-daemon"))
        or not METHOD.exists(),
        reason="needs fcitx5, fcitx5-frontend-gtk3, fcitx5-chewing, mousepad and dbus",
    ),
]


def answers(name: str) -> bool:
    with open_dbus_connection("SESSION") as session:
        return bool(session.send_and_get_reply(message_bus.NameHasOwner(name), timeout=10).body[0])


@pytest.fixture
def editor(screen: str, hand: Hand, bus: None, tmp_path: Path) -> Iterator[None]:
    """An empty text in front; its keys go to a method for Chinese first."""
    settings = tmp_path / ".config" / "fcitx5"
    settings.mkdir(parents=True)
    (settings / "profile").write_text(PROFILE)
    (settings / "config").write_text("[Behavior]\nActiveByDefault=True\n")
    environment = {
        **os.environ, "DISPLAY": screen, "HOME": str(tmp_path), "LC_ALL": "C.UTF-8",
        "GTK_IM_MODULE": "fcitx", "XDG_RUNTIME_DIR": str(tmp_path), "GTK_THEME": "Adwaita",
    }  # fmt: skip
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        environment.pop(name, None)
    with program("fcitx5", env=environment):
        until(lambda: answers("org.fcitx.Fcitx5"), "the input method")
        with program("mousepad", "--disable-server", env=environment):
            to_front(hand, "Mousepad")
            yield


def followed(recorded: Recorded) -> bool:
    """Whether what comes into the text is heard of."""
    texts = recorded.session._elements._texts
    return texts._node is not None and recorded.session._clock.now() > texts._since


def test_keys_that_an_input_method_takes_become_its_text(
    record: Record, hand: Hand, editor: None
) -> None:
    recorded = record()
    # Nobody pressed anything: the widget with the focus was asked for.
    events = recorded.wait(
        lambda e: any(isinstance(x, ElementSeen) and x.focused and x.password is False for x in e),
        "the text that has the focus",
    )
    until(lambda: followed(recorded), "the text")
    hand("type", "--delay", "30", "su3cl3")
    hand("key", "Return")
    recorded.wait(lambda e: [x for x in e if isinstance(x, Committed)], "the text")
    hand("key", "--delay", "60", "Return", "ctrl+space", "o", "k", "Return")
    recorded.wait(entered(3), "the last key")
    events = recorded.stop()
    committed = [e for e in events if isinstance(e, Committed)]
    assert [e.text for e in committed] == ["你好"]
    keys = [e for e in events if isinstance(e, KeyPressed) and e.t <= committed[0].t]
    assert [e.key for e in keys] == [*"su3cl3", "enter"] and not any(e.text for e in keys)
    assert [step.action for step in reduce(events)] == [
        Type("你好"), Hotkey(("enter",)), Hotkey(("ctrl", "space")), Type("ok"), Hotkey(("enter",)),
    ]  # fmt: skip


def entered(times: int) -> Callable[[list[Event]], bool]:
    return lambda e: sum(isinstance(x, KeyPressed) and x.key == "enter" for x in e) >= times
