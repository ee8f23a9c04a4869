"""The command line against a server that speaks the recorder's interface."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring

from recorder.cli import main
from recorder.server.client import Client, ServerError
from recorder.server.sign_in import sign_in
from recorder.spool import Folder, events
from tests.recorder.conftest import Hand, needs_x
from tests.waiting import until
from trajectory.recording import Stopped

TASK = {"id": "12", "title": "Rename a file", "instruction": "Do it.", "kind": "exploration"}


class Tandem(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.polls = ["authorization_pending", "slow_down"]
        self.consent = {"version": "3", "text": "We record your screen and your voice."}
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Answer(BaseHTTPRequestHandler):
    server: Tandem

    def log_message(self, *_: object) -> None: ...

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        match self.path:
            case "/api/device/code":
                self._say(
                    200,
                    {"device_code": "d", "user_code": "WXYZ-1234", "interval": 0,
                     "verification_uri": f"{self.server.address}/device/", "expires_in": 60},
                )  # fmt: skip
            case "/api/device/token" if self.server.polls:
                self._say(400, {"error": self.server.polls.pop(0)})
            case "/api/device/token":
                self._say(200, {"access_token": "token-1", "expires_in": 9})
            case "/api/recorder/tasks/next":
                self._owned(TASK)

    def do_GET(self) -> None:
        match self.path:
            case "/api/recorder/consent":
                self._owned(self.server.consent)
            case "/api/recorder/tasks":
                self._owned([TASK])

    def _owned(self, body: object) -> None:
        self.server.asked.append(self.path)
        allowed = self.headers.get("Authorization") == "Bearer token-1"
        self._say(200 if allowed else 401, body if allowed else {"error": "unauthorized"})

    def _say(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Memory(KeyringBackend):
    """A keyring of this test's own."""

    priority = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self.kept.pop((service, username))


@pytest.fixture
def tandem() -> Iterator[Tandem]:
    server = Tandem()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr("recorder.server.sign_in._SLOWER_S", 0.0)
    return tmp_path


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    before, ring = keyring.get_keyring(), Memory()
    keyring.set_keyring(ring)
    yield ring
    keyring.set_keyring(before)


@pytest.fixture
def no_ring() -> Iterator[None]:
    before = keyring.get_keyring()
    keyring.set_keyring(NoKeyring())
    yield
    keyring.set_keyring(before)


def test_signing_in_shows_the_code_and_keeps_the_token_in_the_keyring(
    tandem: Tandem, home: Path, ring: Memory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["login", tandem.address]) == 0
    said = capsys.readouterr().out
    assert "WXYZ-1234" in said and f"{tandem.address}/device/" in said and "token-1" not in said
    assert ring.kept == {("tandem-recorder", tandem.address): "token-1"}
    assert not (home / "config" / "tandem-recorder" / "tokens.json").exists()
    assert main(["tasks"]) == 0
    assert "Rename a file" in capsys.readouterr().out
    assert main(["logout"]) == 0 and ring.kept == {}
    assert main(["tasks"]) == 1
    assert "not signed in" in capsys.readouterr().err


def test_without_a_keyring_the_token_lies_in_a_file_for_its_owner_alone(
    tandem: Tandem, home: Path, no_ring: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["login", tandem.address]) == 0
    path = home / "config" / "tandem-recorder" / "tokens.json"
    assert f"no keyring: the token lies in {path}" in capsys.readouterr().out
    assert path.stat().st_mode & 0o777 == 0o600
    assert main(["tasks"]) == 0


@pytest.mark.parametrize(
    ("error", "said"),
    [("access_denied", "was refused"), ("expired_token", "not confirmed in time")],
)
def test_a_sign_in_that_fails_says_why(tandem: Tandem, error: str, said: str) -> None:
    tandem.polls = ["authorization_pending", error]
    with pytest.raises(ServerError, match=said):
        sign_in(Client(tandem.address), show=lambda *_: None)


def test_a_server_that_is_not_there_is_named(
    home: Path, ring: Memory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["login", "http://127.0.0.1:9"]) == 1
    assert "http://127.0.0.1:9 can't be reached" in capsys.readouterr().err


def test_recordings_are_listed_and_deleted_only_after_a_yes(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.recorder.test_spool import HEAD

    folder = Folder.make(home / "data" / "tandem-recorder" / "recordings", HEAD)
    assert main(["list"]) == 0
    assert HEAD.id[:8] in capsys.readouterr().out
    monkeypatch.setattr("builtins.input", lambda: "n")
    assert main(["delete", HEAD.id[:8]]) == 1 and folder.path.exists()
    monkeypatch.setattr("builtins.input", lambda: "y")
    assert main(["delete", HEAD.id[:8]]) == 0 and not folder.path.exists()


@needs_x
def test_a_task_is_recorded_only_after_consent(
    tandem: Tandem, home: Path, no_ring: None, screen: str, hand: Hand
) -> None:
    assert main(["login", tandem.address]) == 0
    environment = {
        **os.environ, "DISPLAY": screen, "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
    }  # fmt: skip
    environment.pop("WAYLAND_DISPLAY", None)
    command = [sys.executable, "-m", "recorder.cli", "record", "--no-sound"]
    no = subprocess.run(
        command, env=environment, input="n\n", capture_output=True, text=True, timeout=60
    )
    recordings = home / "data" / "tandem-recorder" / "recordings"
    assert no.returncode == 1 and "We record your screen" in no.stdout
    assert not recordings.exists()

    for answer in ("y\n", ""):  # the second time, this version was agreed to already
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as running:
            assert running.stdin is not None and running.stdout is not None
            running.stdin.write(answer)
            running.stdin.close()
            for line in running.stdout:
                if line.startswith("RECORDING"):
                    break
            hand("key", "ctrl+alt+s")
            assert running.wait(60) == 0
    folders = Folder.all(recordings)
    assert len(folders) == 2
    for folder in folders:
        assert folder.head().consent.version == "3" and folder.head().kind == "exploration"
        assert folder.head().task.title == "Rename a file"
        assert any(isinstance(event, Stopped) for event in events(folder))
    assert shutil.which("xdotool")
    until(lambda: "/api/recorder/tasks/next" in tandem.asked, "the server's task")
