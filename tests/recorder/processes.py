"""`tandem-recorder record` as a process of its own, which tests end in every way."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recorder.server.tokens import Tokens
from recorder.settings import Settings
from recorder.spool import Consent, Folder
from tests.waiting import until


class Recorder:
    """A signed-in recorder with recordings of its own, below `home`."""

    def __init__(
        self, home: Path, server: str, screen: str, data: Path | None = None,
        token: str = "token-1",
    ) -> None:  # fmt: skip
        data = data or home / "data"
        self.recordings = data / "tandem-recorder" / "recordings"
        self.environment = {
            **os.environ, "DISPLAY": screen, "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_DATA_HOME": str(data), "BROWSER": "true",
            "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
        }  # fmt: skip
        self.environment.pop("WAYLAND_DISPLAY", None)
        settings = home / "config" / "tandem-recorder"
        Settings(server, Consent("3", 1.0)).save(settings)
        Tokens(settings, say=lambda _: None)._write({server: token})

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-u", "-m", "recorder.cli", *words]

    def ask(self, *words: str, said: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words), env=self.environment, input=said, text=True,
            capture_output=True, timeout=120,
        )  # fmt: skip

    @property
    def folder(self) -> Folder:
        """The only recording, or the newest."""
        return max(Folder.all(self.recordings), key=lambda one: one.path.stat().st_mtime_ns)

    @contextmanager
    def running(self, *words: str) -> Iterator[Running]:
        """Record something of one's own until the test or the process ends."""
        process = subprocess.Popen(
            self.command("record", "--no-sound", *(words or ("--own", "Write a letter"))),
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        running = Running(process)
        try:
            running.wait_for("RECORDING")
            yield running
        finally:
            process.kill()
            process.wait()
            running.read.join(10)


class Running:
    """A recorder at work, and what it has said."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process, self.said = process, ""
        self.read = threading.Thread(target=self._listen, daemon=True)
        self.read.start()

    def wait_for(self, word: str, times: int = 1) -> None:
        def heard() -> bool:
            assert self.process.poll() is None or word in self.said, self.said
            return self.said.count(word) >= times

        until(heard, f"{word} of the recorder")

    def end(self, code: int = 0) -> str:
        """Wait until it has ended by itself; return all that it said."""
        assert self.process.wait(60) == code, self.said
        self.read.join(10)
        return self.said

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
