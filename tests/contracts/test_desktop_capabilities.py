"""What a whole desktop promises beyond its screen; run against each kind that has programs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from io import BytesIO

import pytest

from sandbox.capabilities import (
    Clipboard,
    FileTree,
    Output,
    Ports,
    Python,
    Recordings,
    Terminals,
    Windows,
)
from sandbox.provider import ActionFailed, Provider, StaleLease
from tests.contracts.conftest import Whole
from tests.sandbox.desktops import new_id
from tests.waiting import until

WITHOUT: dict[str, set[type]] = {"fake": {Ports}}
CAPABILITIES = (Clipboard, FileTree, Ports, Python, Recordings, Terminals, Windows)


def read_on(desktop: Terminals, terminal: str, until: bytes, offset: int = 0) -> bytes:
    """Read a terminal from `offset` until `until` has come."""
    seen, deadline = b"", time.monotonic() + 60
    while until not in seen:
        assert time.monotonic() < deadline, seen[-500:]
        output = desktop.read_terminal(terminal, offset=offset, wait_ms=500)
        seen, offset = seen + output.data, output.offset
    return seen


def finish(desktop: Terminals, terminal: str) -> Output:
    """Read a terminal until its program has ended; return the last output, with all data."""
    seen, offset, deadline = b"", 0, time.monotonic() + 60
    while True:
        assert time.monotonic() < deadline, seen[-500:]
        output = desktop.read_terminal(terminal, offset=offset, wait_ms=500)
        seen, offset = seen + output.data, output.offset
        if output.exit_code is not None:
            return Output(seen, offset, output.exit_code)


def test_it_has_what_it_says(provider: Provider, desktop: Whole) -> None:
    for capability in CAPABILITIES:
        wanted = capability not in WITHOUT.get(provider.name, ())
        assert isinstance(desktop, capability) is wanted, capability


# -- terminals ---------------------------------------------------------------------------------


def test_a_terminal_is_a_real_one(desktop: Whole, epoch: int) -> None:
    terminal = desktop.open_terminal(epoch=epoch, columns=100, rows=30)
    desktop.write_terminal(terminal, b"stty size; tty; echo $TERM; pwd\n", epoch=epoch)
    said = read_on(desktop, terminal, b"xterm-256color\r\n")
    assert b"30 100\r\n" in said
    assert b"/dev/pts/" in said
    desktop.resize_terminal(terminal, columns=60, rows=20, epoch=epoch)
    desktop.write_terminal(terminal, b"stty size\n", epoch=epoch)
    read_on(desktop, terminal, b"20 60\r\n")
    desktop.write_terminal(terminal, "echo '<你好 é 👍>' | tr '<>' '[]'\n".encode(), epoch=epoch)
    read_on(desktop, terminal, "[你好 é 👍]\r\n".encode())
    desktop.write_terminal(terminal, b"exit 7\n", epoch=epoch)
    assert finish(desktop, terminal).exit_code == 7
    desktop.close_terminal(terminal, epoch=epoch)
    desktop.close_terminal(terminal, epoch=epoch)


def test_control_c_interrupts(desktop: Whole, epoch: int) -> None:
    terminal = desktop.open_terminal(epoch=epoch, command="echo be$((1+1))gun; exec sleep 1000")
    read_on(desktop, terminal, b"be2gun\r\n")
    desktop.write_terminal(terminal, b"\x03", epoch=epoch)
    assert finish(desktop, terminal).exit_code not in (0, None)


def test_a_reader_comes_back_at_its_offset(desktop: Whole, epoch: int) -> None:
    terminal = desktop.open_terminal(epoch=epoch, command="seq 5; read x; echo got $x; read x")
    first = read_on(desktop, terminal, b"5\r\n")
    again = desktop.read_terminal(terminal, offset=3, wait_ms=0)
    assert first.startswith(b"1\r\n2\r\n")
    assert again.data == first[3:]
    later: list[bytes] = []
    reader = threading.Thread(
        target=lambda: later.append(read_on(desktop, terminal, b"got", again.offset))
    )
    reader.start()  # waits for what is not there yet
    action_id = new_id()
    for _ in range(3):  # a repeated write enters nothing
        desktop.write_terminal(terminal, b"it\n", epoch=epoch, action_id=action_id)
    reader.join()
    assert b"got it" in later[0]
    quiet = desktop.read_terminal(terminal, offset=10_000_000, wait_ms=50)
    assert quiet.data == b""
    assert quiet.exit_code is None  # the second read has had nothing to read


def test_an_endless_output_is_bounded(desktop: Whole, epoch: int) -> None:
    terminal = desktop.open_terminal(epoch=epoch, command="exec yes 0123456789")
    until(lambda: desktop.read_terminal(terminal, offset=1 << 40, wait_ms=0).offset > 2_200_000)
    old = desktop.read_terminal(terminal, offset=0)
    assert len(old.data) <= 256 * 1024
    assert old.offset > len(old.data)  # the oldest is not kept
    assert desktop.observe().width == 640  # the guest has time for others
    desktop.close_terminal(terminal, epoch=epoch)
    with pytest.raises(ActionFailed, match="no such terminal"):
        desktop.read_terminal(terminal, offset=0)


def test_closing_a_terminal_ends_all_that_runs_in_it(
    desktop: Whole, epoch: int, run: Callable[[str], str]
) -> None:
    mark = f"4242{int(time.time() * 1000) % 10**9}"
    script = f"set -m; sleep {mark} & (trap '' HUP; sleep {mark}) & sleep {mark}"
    terminal = desktop.open_terminal(epoch=epoch, command=script)
    until(lambda: run(f"pgrep -fc '^slee[p] {mark}'").strip() == "3")
    desktop.close_terminal(terminal, epoch=epoch)
    assert run(f"pgrep -fc '^slee[p] {mark}'").strip() == "0"


def test_a_terminal_has_a_time_limit(desktop: Whole, epoch: int) -> None:
    terminal = desktop.open_terminal(epoch=epoch, command="echo a; sleep 1000", timeout_ms=300)
    over = finish(desktop, terminal)
    assert (over.data, over.exit_code) == (b"a\r\n", 124)


def test_so_many_terminals_and_no_more(desktop: Whole, epoch: int) -> None:
    opened = [desktop.open_terminal(epoch=epoch, command="read x") for _ in range(8)]
    with pytest.raises(ActionFailed, match="close one"):
        desktop.open_terminal(epoch=epoch)
    desktop.write_terminal(opened[3], b"\n", epoch=epoch)
    finish(desktop, opened[3])
    desktop.open_terminal(epoch=epoch)  # in the place of the one that ended
    with pytest.raises(ActionFailed):
        desktop.read_terminal(opened[3], offset=0)


def test_a_terminal_belongs_to_its_epoch(desktop: Whole, epoch: int) -> None:
    action_id = new_id()
    terminal = desktop.open_terminal(epoch=epoch, action_id=action_id)
    assert desktop.open_terminal(epoch=epoch, action_id=action_id) == terminal
    with pytest.raises(StaleLease):
        desktop.write_terminal(terminal, b"x", epoch=epoch - 1)
    with pytest.raises(StaleLease):
        desktop.resize_terminal(terminal, columns=10, rows=10, epoch=epoch - 1)
    with pytest.raises(StaleLease):
        desktop.close_terminal(terminal, epoch=epoch - 1)
    with pytest.raises(StaleLease):
        desktop.open_terminal(epoch=epoch - 1)
    desktop.fence(epoch + 1)
    with pytest.raises(ActionFailed, match="changed hands"):
        desktop.read_terminal(terminal, offset=0)


def test_a_terminal_refuses_nonsense(desktop: Whole, epoch: int) -> None:
    with pytest.raises(ActionFailed, match="columns"):
        desktop.open_terminal(epoch=epoch, columns=0)
    terminal = desktop.open_terminal(epoch=epoch, command="sleep 1000")
    with pytest.raises(ActionFailed, match="at once"):
        desktop.write_terminal(terminal, b"x" * 100_000, epoch=epoch)


def test_a_shell_is_over_when_its_command_is(desktop: Whole, run: Callable[[str], str]) -> None:
    assert run("(sleep 3; echo late) & echo at once") == "at once\n"
    long = run("yes | head -c 3000000")
    assert len(long) < 70_000
    assert "[cut: 3000000 bytes in all]" in long


# -- Python ---------------------------------------------------------------------------------------


def test_python_keeps_its_names(desktop: Whole, epoch: int) -> None:
    def python(code: str, timeout_ms: int = 20_000) -> str:
        return desktop.run_python(code, epoch=epoch, action_id=new_id(), timeout_ms=timeout_ms)

    assert python("x = 20\ndef twice(n): return 2 * n") == ""
    assert python("print('a'); twice(x) + 2") == "a\n42\n"
    assert python("None") == ""
    failed = python("def f():\n    1 / 0\nf()")
    assert "ZeroDivisionError" in failed
    assert "1 / 0" in failed  # with the line
    assert "namespace.py" not in failed
    assert "SyntaxError" in python("x = = 1")
    assert python("import subprocess; subprocess.run(['echo', 'child']).returncode") == "child\n0\n"
    assert python("'你好 👍'") == "'你好 👍'\n"
    assert "SystemExit" in python("raise SystemExit(3)")
    assert python("x") == "20\n"
    action_id = new_id()
    for _ in range(2):
        assert desktop.run_python("x += 1; x", epoch=epoch, action_id=action_id) == "21\n"
    late = python("import time\nprint('begun', flush=True)\ntime.sleep(1000)", 500)
    assert late.startswith("begun")
    assert "KeyboardInterrupt" in late
    assert "[interrupted after 500 ms]" in late
    assert python("x") == "21\n"  # an interrupt keeps the names
    assert "[cut: " in python("print('y' * 1_000_000)")
    with pytest.raises(StaleLease):
        desktop.run_python("x", epoch=epoch - 1, action_id=new_id())
    with pytest.raises(ActionFailed, match="bytes of code"):
        python("x = '" + "y" * 100_000 + "'")


def test_python_that_can_not_be_interrupted_is_ended(desktop: Whole, epoch: int) -> None:
    stubborn = "import signal, time\nx = 1\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(1)"
    late = desktop.run_python(stubborn, epoch=epoch, action_id=new_id(), timeout_ms=300)
    assert "its names are gone" in late
    assert "NameError" in desktop.run_python("x", epoch=epoch, action_id=new_id())
    gone = desktop.run_python("import os; os._exit(3)", epoch=epoch, action_id=new_id())
    assert "its names are gone" in gone


def test_python_starts_afresh_for_the_next_holder(desktop: Whole, epoch: int) -> None:
    desktop.run_python("secret = 1", epoch=epoch, action_id=new_id())
    desktop.fence(epoch + 1)
    said = desktop.run_python("secret", epoch=epoch + 1, action_id=new_id())
    assert "NameError" in said or "its names are gone" in said


# -- clipboard, windows, film ----------------------------------------------------------------------


def test_the_clipboard_is_read_and_set(desktop: Whole, epoch: int) -> None:
    for text in ("plain", "你好\n\tשלום e\u0301 👍🏽", "<b>&</b>", "x" * 1_000_000, ""):
        desktop.set_clipboard(text, epoch=epoch)
        assert desktop.clipboard() == text
    with pytest.raises(ActionFailed, match="at most"):
        desktop.set_clipboard("é" * 600_000, epoch=epoch)
    with pytest.raises(StaleLease):
        desktop.set_clipboard("x", epoch=epoch - 1)


def test_windows_are_listed_raised_and_closed(
    provider: Provider, desktop: Whole, epoch: int
) -> None:
    for count, title in enumerate(("first", "second"), start=1):
        argv = ["xterm", "-title", title, "-geometry", "20x5", "-e", "sleep", "1000"]
        desktop.launch(argv, epoch=epoch, action_id=new_id())
        until(lambda n=count: len(desktop.windows()) == n)  # type: ignore[misc]
    one, two = desktop.windows()
    assert "xterm" in one.program
    assert all(n >= 0 for n in one.box)
    assert one.box[2] > 50
    for window in (one, two, one):
        desktop.activate_window(window.id, epoch=epoch)
        until(lambda w=window: [v.id for v in desktop.windows() if v.active] == [w.id])  # type: ignore[misc]
    with pytest.raises(StaleLease):
        desktop.close_window(one.id, epoch=epoch - 1)
    desktop.close_window(one.id, epoch=epoch)
    until(lambda: [window.id for window in desktop.windows()] == [two.id])
    with pytest.raises(ActionFailed, match="no window"):
        desktop.activate_window(one.id, epoch=epoch)
    desktop.close_window(two.id, epoch=epoch)
    until(lambda: not desktop.windows())


def test_a_film_is_webm(desktop: Whole, epoch: int) -> None:
    av = pytest.importorskip("av", reason="needs PyAV")
    with pytest.raises(StaleLease):
        desktop.start_recording(epoch=epoch - 1)
    with pytest.raises(ActionFailed, match="no recording"):
        desktop.stop_recording(epoch=epoch)
    with pytest.raises(ActionFailed, match="frames a second"):
        desktop.start_recording(epoch=epoch, fps=0)
    desktop.start_recording(epoch=epoch, fps=20)
    with pytest.raises(ActionFailed, match="under way"):
        desktop.start_recording(epoch=epoch)
    film = desktop.stop_recording(epoch=epoch)
    assert film[:4] == b"\x1a\x45\xdf\xa3"  # EBML
    with av.open(BytesIO(film)) as opened:
        assert opened.format.name.startswith("matroska")
        frames = list(opened.decode(video=0))
    assert frames
    assert (frames[0].width, frames[0].height) == (640, 480)


def test_frames_name_their_picture(desktop: Whole, epoch: int) -> None:
    desktop.settle()
    first, second = desktop.observe(), desktop.observe()
    assert len(first.sha256) == 64
    assert (first.png == second.png) is (first.sha256 == second.sha256)


def test_ports_that_listen_are_named(provider: Provider, desktop: Whole, epoch: int) -> None:
    if Ports in WITHOUT.get(provider.name, ()):
        pytest.skip(f"provider {provider.name} has no ports of its own")
    before = desktop.ports()
    code = (
        "import socket\na = socket.create_server(('127.0.0.1', 0))\n"
        "b = socket.create_server(('::1', 0), family=socket.AF_INET6)\n"
        "a.getsockname()[1], b.getsockname()[1]"
    )
    said = desktop.run_python(code, epoch=epoch, action_id=new_id())
    opened = {int(port) for port in said.strip("()\n").split(",")}
    assert opened == set(desktop.ports()) - set(before)
