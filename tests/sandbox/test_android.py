"""Phones through the real adb client and server, before simulated devices. No Android runs here."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sandbox.provider import (
    ActionFailed,
    Desktop,
    DesktopLost,
    Handle,
    ProvisionFailed,
    SandboxSpec,
)
from sandbox.providers.android import AndroidProvider
from sandbox.providers.android.adb import Adb
from sandbox.providers.android.phone import CLAIM
from sandbox.screen.rfb import Key, Pointer, encode_input
from sandbox.screen.stream import Relay
from tests.sandbox.desktops import new_id
from tests.sandbox.phones import needs_adb, phones
from tests.sandbox.relays import MemoryGate, serving
from tests.sandbox.screens import Viewer, until, viewer
from trajectory import (
    Action,
    Click,
    Drag,
    Hotkey,
    KeyDown,
    LongPress,
    MouseDown,
    MouseUp,
    Move,
    Navigate,
    NavigateBack,
    OpenApp,
    Scroll,
    Type,
)

pytestmark = [needs_adb, pytest.mark.timeout(240)]

UPDATE = struct.pack(">BBHHHH", 3, 0, 0, 0, 360, 640)


@pytest.fixture
def adbs(tmp_path: Path) -> Iterator[tuple[list[Adb], AndroidProvider]]:
    """Two fresh phones for each test: what one did to them must not meet the next."""
    with phones(tmp_path, count=2) as found:
        yield found, AndroidProvider(tmp_path / "sb")


@pytest.fixture
def adb(adbs: tuple[list[Adb], AndroidProvider]) -> Adb:
    """The phone that is claimed first."""
    return adbs[0][0]


@pytest.fixture
def provider(adbs: tuple[list[Adb], AndroidProvider]) -> AndroidProvider:
    return adbs[1]


@pytest.fixture
def handle(provider: AndroidProvider, adb: Adb) -> Iterator[Handle]:
    adb.shell("simulate keyboard")
    handle = provider.start(SandboxSpec("first"))
    yield handle
    provider.stop(handle)


@pytest.fixture
def desktop(provider: AndroidProvider, handle: Handle) -> Iterator[Desktop]:
    desktop = provider.connect(handle)
    desktop.fence(int(str(desktop.health()["epoch"])) + 1)
    yield desktop
    desktop.close()


@pytest.fixture
def do(desktop: Desktop) -> Callable[[Action], object]:
    epoch = int(str(desktop.health()["epoch"]))
    return lambda action: desktop.perform(action, epoch=epoch, action_id=new_id())


@pytest.fixture
def second(provider: AndroidProvider, handle: Handle) -> Iterator[Handle]:
    """A sandbox on the other phone, which has no keyboard for any text; the test may break it."""
    handle = provider.start(SandboxSpec("second"))
    yield handle
    provider.stop(handle)


def named(desktop: Desktop) -> dict[str, str]:
    return {e.name: e.value for e in desktop.observe(elements=True).elements or ()}


def note(adb: Adb) -> str:
    return str(eval(adb.shell("simulate note").text))


def test_gestures_reach_the_apps(desktop, do, adb):
    do(OpenApp("Settings"))
    assert "Option 1" in named(desktop) and "Option 18" not in named(desktop)
    do(Scroll(180, 400, dy=6))
    assert "Option 18" in named(desktop)
    box = next(e for e in desktop.observe(elements=True).elements or () if e.name == "Option 18")
    do(Click(*box.centre))
    assert named(desktop)["Option 18"] == "on"
    do(OpenApp("com.example.gallery"))
    do(Drag(((300, 400), (50, 400))))
    assert "Picture 2" in named(desktop)
    do(Drag(((300, 400), (200, 410), (50, 400))))
    assert "Picture 3" in named(desktop)
    do(LongPress(100, 300))
    assert "swipe 100 300 100 300 1000" in adb.shell("simulate log").text


def test_keys_and_places_to_go(desktop, do):
    do(Navigate("https://example.org/?a=1&b='2'"))
    assert "https://example.org/?a=1&b='2'" in named(desktop)
    do(NavigateBack())
    assert "Notes" in named(desktop)
    do(Hotkey(("alt", "tab")))
    assert "Recent apps" in named(desktop)
    do(Hotkey(("home",)))
    assert "Notes" in named(desktop)


def test_any_text_is_entered_once(do, adb):
    do(OpenApp("notes"))
    do(Click(200, 150))
    do(Hotkey(("ctrl", "a")))
    do(Type('It\'s 100%s "ok"; $HOME\n'))
    do(Type("Grüße, 世界 🎉 \u0627", submit=True))
    assert note(adb) == 'It\'s 100%s "ok"; $HOME\nGrüße, 世界 🎉 \u0627\n'
    long = "é" * 2000
    do(Click(200, 150))
    do(Hotkey(("ctrl", "a")))
    do(Type(long))
    assert note(adb) == long


def test_a_held_finger_goes_up_with_the_fence(desktop, do, adb):
    with pytest.raises(ActionFailed, match="where the finger is"):
        do(MouseDown())
    do(Move(30, 540))
    do(MouseDown())
    desktop.fence(int(str(desktop.health()["epoch"])) + 1)
    assert adb.shell("simulate log").text.rstrip().endswith("motionevent UP 30 540")
    with pytest.raises(ActionFailed, match="KeyDown"):
        epoch = int(str(desktop.health()["epoch"]))
        desktop.perform(KeyDown("a"), epoch=epoch, action_id=new_id())


def test_a_mouse_can_be_a_finger(desktop, do):
    do(Hotkey(("home",)))
    for action in (Move(30, 540), MouseDown(), MouseUp()):
        do(action)
    assert "Clear" in named(desktop)


def test_programs_and_apps_that_are_not_there(desktop, do):
    epoch = int(str(desktop.health()["epoch"]))
    with pytest.raises(ActionFailed, match=r"no app 'tetris'; there are: com\.android\.chrome"):
        do(OpenApp("tetris"))
    with pytest.raises(ActionFailed, match="starts packages"):
        desktop.launch(["xterm"], epoch=epoch, action_id=new_id())
    with pytest.raises(ActionFailed, match="does not exist"):
        desktop.launch(["com.example.none/.Main"], epoch=epoch, action_id=new_id())
    desktop.launch(["com.example.gallery"], epoch=epoch, action_id=new_id())
    assert any(name.startswith("Picture") for name in named(desktop))


def test_files_of_shared_storage(desktop, adb):
    epoch = int(str(desktop.health()["epoch"]))
    data = bytes(range(256)) * 4096
    desktop.write_file("/sdcard/Download/it's.bin", data, epoch=epoch)
    assert desktop.read_file("/sdcard/Download/it's.bin") == data
    assert "it's.bin" in desktop.shell("ls /sdcard/Download", epoch=epoch, action_id="ls").output
    for path in ("/data/local/tmp/tandem-claim", "/sdcard/../data/x", "/sdcard"):
        with pytest.raises(ActionFailed, match="outside the phone's shared storage"):
            desktop.read_file(path)


def test_a_command_without_an_end_is_bounded(desktop):
    epoch = int(str(desktop.health()["epoch"]))
    lots = desktop.shell("head -c 100000 /dev/zero", epoch=epoch, action_id="lots")
    assert len(lots.output) < 66_000 and "[cut: 100000 bytes in all]" in lots.output
    with pytest.raises(ActionFailed, match="at most 3500 bytes"):
        desktop.shell("x" * 4000, epoch=epoch, action_id="long")
    left = desktop.shell("sleep 30 & echo started", epoch=epoch, action_id="left")
    assert left.output == "started\n"  # what goes on does not hold up the answer


def test_a_phone_without_that_keyboard_says_so(provider, second):
    desktop = provider.connect(second)
    desktop.fence(1)
    with pytest.raises(ActionFailed, match=r"can't enter 'é'.*ADBKeyboard"):
        desktop.perform(Type("abé"), epoch=1, action_id="a")


def test_no_phone_is_given_twice(provider, second):
    with pytest.raises(ProvisionFailed, match=r"no phone is free:.*held by another sandbox"):
        provider.start(SandboxSpec("third"))
    assert "third" not in [handle.name for handle in provider.running()]


def _lost(provider: AndroidProvider, handle: Handle, said: str) -> None:
    deadline = time.monotonic() + 60
    while provider.alive(handle):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    with pytest.raises(DesktopLost, match=said):
        provider.connect(handle)


def test_whoever_was_overtaken_does_nothing_more(provider, adbs, second):
    adb = adbs[0][1]
    adb.shell(f"echo another-nonce another-host first-boot > {CLAIM}")
    before = adb.shell("simulate log").text
    desktop = provider.connect(second)
    with pytest.raises(DesktopLost):
        desktop.fence(1)
        desktop.perform(Click(30, 540), epoch=1, action_id="a")
    _lost(provider, second, "claimed by another, or has started again")
    assert adb.shell("simulate log").text == before
    provider.stop(second)
    with pytest.raises(ProvisionFailed, match=r"held by another host \(another-host\)"):
        provider.start(SandboxSpec("second"))
    adb.shell(f"touch -d '2 minutes ago' {CLAIM}")  # nobody renews it
    again = provider.start(SandboxSpec("second"))
    assert provider.alive(again)
    provider.stop(again)


def test_a_restarted_phone_is_another_one(provider, adbs, second):
    desktop = provider.connect(second)
    desktop.fence(1)
    adbs[0][1].shell("simulate reboot second-boot")
    with pytest.raises(DesktopLost):
        desktop.perform(Click(30, 540), epoch=1, action_id="a")
    _lost(provider, second, "started again")


def test_a_locked_phone_is_not_given_out(provider, handle, adbs):
    adbs[0][1].shell("simulate locked yes")
    with pytest.raises(ProvisionFailed, match="is locked: remove its PIN"):
        provider.start(SandboxSpec("locked"))
    adbs[0][1].shell("simulate locked no")


def test_given_back_it_carries_no_claim(provider, handle, adbs):
    other = provider.start(SandboxSpec("brief"))
    assert other.boot_id in adbs[0][1].shell(f"cat {CLAIM}").text
    provider.stop(other)
    assert "No such file" in adbs[0][1].shell(f"cat {CLAIM}").text
    assert "No such file" in adbs[0][1].shell("ls /sdcard/Tandem").text


async def _click(screen: Viewer, *path: tuple[int, int]) -> None:
    for x, y in path:
        await screen.send(encode_input(Pointer(x, y, 1)))
    await screen.send(encode_input(Pointer(*path[-1], 0)))


async def test_a_person_sees_and_touches_it_through_the_relay(handle, do, adb):
    do(OpenApp("notes"))
    do(Click(200, 150))
    do(Type("to be cleared"))
    gate = MemoryGate(handle.rfb_socket)
    async with serving(Relay(gate)) as port, viewer(port, gate.ticket()) as screen:
        assert await screen.shake_hands() == (360, 640)
        await screen.send(struct.pack(">BxHii", 2, 2, 7, -26) + UPDATE)
        # One Tight rectangle of JPEG, as a page is served.
        _, count, *box, encoding = struct.unpack(">BxHHHHHi", await screen.read(16))
        assert (count, box, encoding) == (1, [0, 0, 360, 640], 7)
        assert await screen.read(1) == b"\x90"
        await gate.give(True)
        await _click(screen, (90, 400))  # the button Clear
        await until(lambda: note(adb) == "")
        await _click(screen, (200, 150))
        for character in "Hi there":
            for down in (True, False):
                await screen.send(encode_input(Key(ord(character), down)))
        await until(lambda: note(adb) == "Hi there")
        do(OpenApp("gallery"))
        await _click(screen, (300, 400), (200, 402), (50, 404))
        await until(lambda: "swipe 300 400 50 404" in adb.shell("simulate log").text)


def test_an_unplugged_phone_is_lost_with_a_cause(provider, handle, adbs):
    other = provider.start(SandboxSpec("unplugged"))
    desktop = provider.connect(other)
    with suppress(DesktopLost):  # it may be gone before it has answered
        adbs[0][1].shell("simulate unplug")
    with pytest.raises(DesktopLost):
        for _ in range(200):
            desktop.observe()
    _lost(provider, other, "127.0.0.1")
    provider.stop(other)
