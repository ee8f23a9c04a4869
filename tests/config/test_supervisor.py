"""What `make run` promises: in order, started again, named in one line, nothing left."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.embedded.leftovers import MARK, end, marked
from config.embedded.service import PORTS, StartFailed, free_ports
from config.embedded.state import State

ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def toy(scenario: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.config.toy", scenario, str(folder)],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        end(marked(folder), patience_s=1)


def until(process: subprocess.Popen[str], wanted: str) -> list[str]:
    """Return the lines up to the one that holds `wanted`; the suite's time-out is the deadline."""
    assert process.stdout
    lines = []
    for line in process.stdout:
        lines.append(line.strip())
        if wanted in line:
            return lines
    raise AssertionError(f"it never said {wanted!r}: {lines}")


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def pids_of(process: subprocess.Popen[str], word: str) -> list[int]:
    found = subprocess.run(
        ["pgrep", "-P", str(process.pid), "-f", word], capture_output=True, text=True
    )
    return [int(pid) for pid in found.stdout.split()]


def pid_of(process: subprocess.Popen[str], word: str) -> int:
    return pids_of(process, word)[0]


def test_what_dies_is_named_and_started_again_and_a_stop_leaves_nothing(tmp_path):
    with toy("watch", tmp_path) as process:
        lines = until(process, "usable")
        assert [line.split()[0] for line in lines] == ["first", "steady", "late", "usable"]
        orphan = int((tmp_path / "orphan").read_text())
        os.kill(pid_of(process, "setsid"), signal.SIGKILL)
        (line,) = until(process, "killed by SIGKILL")
        assert f"steady was killed by SIGKILL; it starts again in 0.0 s. Log: {tmp_path}" in line
        until(process, "steady")
        second = int((tmp_path / "orphan").read_text())
        process.send_signal(signal.SIGINT)
        until(process, "stopped")
        assert process.wait() == 0
        assert gone(orphan)
        assert gone(second)
        assert marked(tmp_path) == set()


def test_what_keeps_dying_stays_down_and_says_so(tmp_path):
    with toy("loop", tmp_path) as process:
        line = until(process, "stays down")[-1]
        assert "broken ended with status 3, 5 times in a row" in line
        assert "no luck" in line
        assert "broken.log" in line


def test_a_full_disk_at_a_new_start_stops_nothing_else(tmp_path):
    with toy("full-disk", tmp_path) as process:
        until(process, "usable")
        os.kill(pid_of(process, "sleep"), signal.SIGKILL)
        lines = until(process, "ready")
        assert [line for line in lines if "No space left" in line] == lines[1:3]
        assert process.poll() is None


def test_a_probe_that_breaks_is_asked_again_and_named_in_the_end(tmp_path):
    with toy("odd-probe", tmp_path) as process:
        lines = until(process, "was not ready")
        assert [line for line in lines if line.startswith("odd ")]  # the second time
        assert "odder was not ready within 1 s (ValueError: a broken probe)" in lines[-1]


def test_a_closed_terminal_stops_nothing(tmp_path):
    with toy("watch", tmp_path) as process:
        until(process, "usable")
        process.stdout.close()
        killed = pid_of(process, "setsid")
        os.kill(killed, signal.SIGKILL)  # whatever is said of it, nobody hears
        deadline = time.monotonic() + 30
        while pids_of(process, "setsid") in ([], [killed]):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert marked(tmp_path) == set()


def test_a_setup_that_fails_ends_the_start_with_its_last_words(tmp_path):
    with toy("failed-setup", tmp_path) as process:
        line = until(process, "failed:")[-1]
        assert line.startswith("failed: setup ended with status 4: cannot migrate; log: ")
        until(process, "stopped")
        assert marked(tmp_path) == set()


def test_what_a_killed_supervisor_left_is_found_and_ended(tmp_path):
    with toy("watch", tmp_path) as process:
        until(process, "usable")
        process.kill()
        process.wait()
        left = marked(tmp_path)
        assert int((tmp_path / "orphan").read_text()) in left
        end(left, patience_s=5)
        assert marked(tmp_path) == set()


def test_one_state_folder_has_one_supervisor(tmp_path):
    state = State(tmp_path)
    state.prepare()
    assert state.holder() is None
    with state.hold():
        assert state.holder() == os.getpid()
        with pytest.raises(StartFailed, match=f"process {os.getpid()}.*make stop"):
            state.hold()
    assert state.holder() is None


def test_secrets_and_ports_are_made_once_and_private(tmp_path):
    state = State(tmp_path)
    state.prepare()
    secrets, ports = state.secret(), state.ports()
    assert state.secret() == secrets
    assert state.ports() == ports
    assert len(set(ports.values())) == len(ports)
    assert all(len(secret) >= 24 for secret in secrets.values())
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "state").iterdir()} == {0o600}


def test_a_taken_port_is_replaced_and_a_damaged_file_is_named(tmp_path):
    import socket

    state = State(tmp_path)
    state.prepare()
    ports = state.ports()
    with socket.socket() as other:
        other.bind(("127.0.0.1", ports["valkey"]))
        changed = state.ports()
        assert changed["valkey"] != ports["valkey"]
        assert changed["postgres"] == ports["postgres"]
    (tmp_path / "state" / "ports.json").write_text("{")
    with pytest.raises(StartFailed, match=r"ports\.json is damaged"):
        state.ports()


def test_the_mark_is_what_children_carry():
    assert MARK == "TANDEM_SUPERVISOR"  # a killed older version's children must be found


def test_free_ports_lie_below_those_of_connections_and_differ_whatever_the_seed():
    first = random.seed(7) or free_ports(8)
    second = random.seed(7) or free_ports(8)
    assert len({*first, *second}) > 8
    assert PORTS.stop <= 32_768 and set(first + second) <= set(PORTS)
    assert not set(free_ports(8, but=first)) & set(first)
