"""What every provider and its desktops promise; run against each of them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from io import BytesIO

import pytest
from PIL import Image

from sandbox.provider import (
    ActionFailed,
    Desktop,
    DesktopLost,
    Handle,
    Provider,
    ProvisionFailed,
    SandboxSpec,
    StaleLease,
)  # fmt: skip
from sandbox.providers import load
from sandbox.providers.fake import FakeProvider
from tests.sandbox.cluster import cluster
from tests.sandbox.desktops import (
    needs_container,
    needs_headless_shell,
    needs_local,
    needs_qemu,
    new_id,
    skip_without_image,
)
from tests.sandbox.far import machines
from tests.sandbox.phones import needs_adb, phones
from trajectory import Click, Finish, Hotkey, Move, Navigate, OpenApp, Type, Wait

WITHOUT = {"browser": {"shell", "programs", "files"}}
"""What a kind of computer does not have. It still has to say so, with a test of its own below."""

OWN_SIZE = {"android": (360, 640)}
"""A phone has the screen it has (this one is simulated: no Android runs)."""

TEXT_FIELD = {
    "browser": Navigate("data:text/html,<textarea style='width:600px;height:200px'></textarea>"),
    "android": OpenApp("notes"),
}
"""What shows an empty text field at (200, 150); on a desktop it is a terminal."""

NO_PAGE_IN_FRONT = {"fake", "local", "qemu", "container", "remote", "kubernetes", "android"}
"""A fresh computer of these shows no page; a browser's is one."""

AROUND = {
    "android": lambda root: phones(root, count=2),
    "remote": machines,
    "kubernetes": cluster,
}
"""What has to be there for a provider to have computers. The cluster is simulated, its pods are not."""


@pytest.fixture(
    params=[
        "fake",
        pytest.param("local", marks=needs_local),
        pytest.param("qemu", marks=needs_qemu),
        pytest.param("container", marks=needs_container),
        pytest.param("remote", marks=needs_local),
        pytest.param("kubernetes", marks=needs_local),
        pytest.param("browser", marks=needs_headless_shell),
        pytest.param("android", marks=needs_adb),
    ],
    scope="module",
)
def provider(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Provider]:
    root = tmp_path_factory.mktemp("sb")
    if request.param == "container":
        skip_without_image()
    around = AROUND.get(request.param)
    with around(root) if around is not None else nullcontext():
        yield load(request.param, state=root / request.param)


def needs(provider: Provider, what: str) -> None:
    """Skip a test of what this kind of computer does not have, by name."""
    if what in WITHOUT.get(provider.name, ()):
        pytest.skip(f"provider {provider.name} has no {what}")


@pytest.fixture(scope="module")
def handle(provider: Provider) -> Iterator[Handle]:
    handle = provider.start(SandboxSpec("shared", width=1024, height=640))
    yield handle
    provider.stop(handle)


@pytest.fixture
def desktop(provider: Provider, handle: Handle) -> Iterator[Desktop]:
    desktop = provider.connect(handle)
    yield desktop
    desktop.close()


@pytest.fixture
def epoch(desktop: Desktop) -> int:
    """The desktop fenced for this test alone, with nothing open but an empty text field."""
    epoch = int(str(desktop.health()["epoch"])) + 1
    desktop.fence(epoch)
    return epoch


@pytest.fixture
def own(provider: Provider) -> Iterator[Callable[[str], Handle]]:
    """Start computers that the test ends or breaks itself; what is left is stopped."""
    started: list[Handle] = []

    def start(name: str) -> Handle:
        started.append(provider.start(SandboxSpec(name)))
        return started[-1]

    yield start
    for handle in started:
        provider.stop(handle)


def _pixels(desktop: Desktop) -> bytes:
    with Image.open(BytesIO(desktop.observe().png)) as picture:
        return picture.convert("RGB").tobytes()


def _changes(desktop: Desktop, before: bytes) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if _pixels(desktop) != before:
            return True
    return False


def test_health_names_this_start(desktop: Desktop, handle: Handle) -> None:
    health = desktop.health()
    assert health["boot_id"] == handle.boot_id
    assert health["ready"] is True


def test_observation_is_a_picture_of_the_size_asked_for(
    provider: Provider, desktop: Desktop
) -> None:
    first, second = desktop.observe(), desktop.observe()
    with Image.open(BytesIO(first.png)) as picture:
        assert picture.format == "PNG"
        assert picture.size == (first.width, first.height) == (desktop.width, desktop.height)
    assert picture.size == OWN_SIZE.get(provider.name, (1024, 640))
    assert first.elements is None
    assert second.seq > first.seq
    assert second.captured_at >= first.captured_at


def test_elements_only_when_asked_for(desktop: Desktop) -> None:
    assert isinstance(desktop.observe(elements=True).elements, tuple)


def test_the_epoch_only_rises(desktop: Desktop, epoch: int) -> None:
    desktop.fence(epoch)
    with pytest.raises(StaleLease):
        desktop.fence(epoch - 1)
    assert desktop.health()["epoch"] == epoch


@pytest.mark.parametrize("off", [-1, 1])
def test_another_epoch_can_do_nothing(desktop: Desktop, epoch: int, off: int) -> None:
    wrong = epoch + off
    with pytest.raises(StaleLease):
        desktop.perform(Move(5, 5), epoch=wrong, action_id=new_id())
    with pytest.raises(StaleLease):
        desktop.shell("touch stale", epoch=wrong, action_id=new_id())
    with pytest.raises(StaleLease):
        desktop.launch(["true"], epoch=wrong, action_id=new_id())
    with pytest.raises(StaleLease):
        desktop.write_file("stale", b"", epoch=wrong)
    with pytest.raises(ActionFailed):
        desktop.read_file("stale")


def test_a_refused_stale_id_can_be_used_by_the_new_owner(desktop: Desktop, epoch: int) -> None:
    action_id = new_id()
    with pytest.raises(StaleLease):
        desktop.perform(Move(5, 5), epoch=epoch - 1, action_id=action_id)
    assert not desktop.perform(Move(5, 5), epoch=epoch, action_id=action_id).replayed


def test_what_it_does_not_have_is_refused_by_name(
    provider: Provider, desktop: Desktop, epoch: int
) -> None:
    lacks = WITHOUT.get(provider.name)
    if lacks is None:
        pytest.skip(f"provider {provider.name} has everything")
    calls: dict[str, Callable[[], object]] = {
        "shell": lambda: desktop.shell("true", epoch=epoch, action_id=new_id()),
        "programs": lambda: desktop.launch(["true"], epoch=epoch, action_id=new_id()),
        "files": lambda: desktop.write_file("a", b"", epoch=epoch),
    }
    for what in lacks:
        with pytest.raises(ActionFailed, match=what):
            calls[what]()
    with pytest.raises(ActionFailed, match="files"):
        desktop.read_file("a")


def test_an_action_id_is_done_once(provider: Provider, desktop: Desktop, epoch: int) -> None:
    needs(provider, "shell")
    action_id = new_id()
    command = "echo x >> once.txt; wc -l < once.txt"
    first = desktop.shell(command, epoch=epoch, action_id=action_id)
    again = desktop.shell(command, epoch=epoch, action_id=action_id)
    assert (first.output, first.replayed) == (again.output, False)
    assert again.replayed
    desktop.shell("rm once.txt", epoch=epoch, action_id=new_id())


def test_a_concurrent_retry_waits_for_the_first(
    provider: Provider, desktop: Desktop, epoch: int
) -> None:
    needs(provider, "shell")
    action_id, results = new_id(), []

    def send() -> None:
        results.append(
            desktop.shell("echo x >> both.txt; cat both.txt", epoch=epoch, action_id=action_id)
        )

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(result.replayed for result in results) == [False, True, True, True]
    assert {result.output for result in results} == {"x\n"}
    desktop.shell("rm both.txt", epoch=epoch, action_id=new_id())


def test_a_failure_is_remembered_too(desktop: Desktop, epoch: int) -> None:
    action_id = new_id()
    for _ in range(2):
        with pytest.raises(ActionFailed, match=r"outside the (screen|page)"):
            desktop.perform(Click(5000, 5), epoch=epoch, action_id=action_id)


def test_typing_after_a_click_shows(provider: Provider, desktop: Desktop, epoch: int) -> None:
    before = _pixels(desktop)
    if (shows := TEXT_FIELD.get(provider.name)) is not None:
        desktop.perform(shows, epoch=epoch, action_id=new_id())
    else:
        xterm = ["xterm", "-geometry", "60x10+20+20"]
        desktop.launch(xterm, epoch=epoch, action_id=new_id())
    assert _changes(desktop, before)
    assert desktop.settle(quiet_ms=300, max_ms=60_000)
    desktop.perform(Click(200, 150), epoch=epoch, action_id=new_id())
    before = _pixels(desktop)
    desktop.perform(Type("hello"), epoch=epoch, action_id=new_id())
    assert _changes(desktop, before)


def test_what_no_computer_does(provider: Provider, desktop: Desktop, epoch: int) -> None:
    with pytest.raises(ActionFailed, match="nonsense"):
        desktop.perform(Hotkey(("ctrl", "nonsense")), epoch=epoch, action_id=new_id())
    with pytest.raises(ActionFailed):
        desktop.launch([], epoch=epoch, action_id=new_id())
    if provider.name in NO_PAGE_IN_FRONT:
        with pytest.raises(ActionFailed):
            desktop.evaluate("1")
    with pytest.raises(ActionFailed):
        desktop.evaluate("nonsense(")
    desktop.perform(Finish("said to people"), epoch=epoch, action_id=new_id())
    desktop.perform(Wait(1), epoch=epoch, action_id=new_id())


def test_shell_gives_output_and_exit_code(provider: Provider, desktop: Desktop, epoch: int) -> None:
    needs(provider, "shell")
    result = desktop.shell("echo out; echo err >&2; exit 3", epoch=epoch, action_id=new_id())
    assert (result.output, result.exit_code) == ("out\nerr\n", 3)
    late = desktop.shell("sleep 60", epoch=epoch, action_id=new_id(), timeout_ms=200)
    assert late.exit_code == 124
    assert "ended after 200 ms" in late.output


def test_files_stay_inside_the_home(provider: Provider, desktop: Desktop, epoch: int) -> None:
    needs(provider, "files")
    desktop.write_file("notes/a.txt", "é\0".encode(), epoch=epoch)
    assert desktop.read_file("notes/a.txt") == "é\0".encode()
    assert desktop.read_file("~/notes/a.txt") == "é\0".encode()
    for path in ("missing.txt", "../../etc/passwd", "/etc/passwd"):
        with pytest.raises(ActionFailed):
            desktop.read_file(path)
    with pytest.raises(ActionFailed):
        desktop.write_file("../x", b"", epoch=epoch)


def test_a_name_is_one_computer(provider: Provider, handle: Handle) -> None:
    with pytest.raises(ProvisionFailed, match="exists already"):
        provider.start(SandboxSpec(handle.name))
    assert handle in provider.running()
    assert provider.alive(handle)


def test_a_computer_ends_by_stop_or_by_kill_and_the_next_of_its_name_is_fresh(
    provider: Provider, own: Callable[[str], Handle]
) -> None:
    """One story, because starts are what takes long here: stopped twice, started again, killed."""
    first = own("again")
    desktop = provider.connect(first)
    desktop.fence(7)
    if "files" not in WITHOUT.get(provider.name, ()):
        desktop.write_file("left.txt", b"x", epoch=7)
    for _ in range(2):
        provider.stop(first)
        assert first not in provider.running()
        assert not provider.alive(first)

    second = own("again")
    assert second.boot_id != first.boot_id
    assert not provider.alive(first)
    with pytest.raises(DesktopLost):
        provider.connect(first)
    fresh = provider.connect(second)
    assert fresh.health()["epoch"] == 0
    with pytest.raises(ActionFailed):
        fresh.read_file("left.txt")
    provider.stop(first)  # an old handle can't end the new start
    assert provider.alive(second)

    if isinstance(provider, FakeProvider):
        provider.kill(second)
    else:
        os.kill(second.pid, signal.SIGKILL)
    with pytest.raises(DesktopLost):
        for _ in range(200):  # the kernel takes a moment to end every process
            fresh.observe()
    assert not provider.alive(second)
    assert second in provider.running()  # somebody has to clear what it left
    provider.stop(second)
    assert second not in provider.running()
