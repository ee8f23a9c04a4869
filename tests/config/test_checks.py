"""What `make run` checks before anything starts, each with a line that says the way out; and `make reset`."""

import shutil
import socket
from collections import namedtuple

import pytest

from config.embedded import __main__ as embedded
from config.embedded import checks, parts
from config.embedded.service import StartFailed, tail
from config.embedded.state import State

Usage = namedtuple("Usage", "total used free")


def test_a_port_that_is_taken_and_one_that_is_not_ours_are_told_apart():
    with socket.create_server(("127.0.0.1", 0)) as other:
        with pytest.raises(StartFailed, match="is in use: `TANDEM_PORT="):
            checks.web_port("127.0.0.1", other.getsockname()[1])
    with pytest.raises(StartFailed, match=r"can't listen on 192\.0\.2\.1.*TANDEM_BIND"):
        checks.web_port("192.0.2.1", 8000)


@pytest.mark.parametrize("text", ["eight", "0", "65536", "-1", "1" * 9000, "8000 "])
def test_a_port_that_is_none_is_named(text):
    with pytest.raises(StartFailed, match="TANDEM_PORT"):
        parts.port_of(text)
    assert parts.port_of("65535") == 65535


def test_only_a_first_start_needs_room_for_a_model(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, 1 << 30))
    held = State(tmp_path)
    held.prepare()
    with pytest.raises(StartFailed, match="no disk space: 1024 MiB free"):
        checks.disk(tmp_path)
    parts.setup_is_done(held)  # the services' data may lie elsewhere
    checks.disk(tmp_path)


def test_a_reset_forgets_all_but_the_models(tmp_path, monkeypatch):
    monkeypatch.setattr(State, "services", lambda self, account: self.root)
    held = State(tmp_path / "state")
    held.prepare()
    held.secret()
    for name in ("postgres", "blobs", "spool", "tasks", "tls", "models"):
        (held.root / name).mkdir()
        (held.root / name / "file").touch()
    embedded.reset(held)
    assert [path.name for path in held.root.iterdir()] == ["models"]
    with pytest.raises(StartFailed, match="nothing to reset"):
        embedded.reset(held)


def test_the_end_of_a_long_log_is_read_without_the_rest(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"old\n" * (1 << 20) + "last wörds\n".encode())
    assert tail(log, 1) == "last wörds"
    assert len(tail(log, 1 << 20)) <= 16 << 10
    assert tail(tmp_path / "none") == ""
