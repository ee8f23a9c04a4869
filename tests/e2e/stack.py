"""A whole Tandem of its own: what `make run` starts, in a state folder and on a port of the test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import psycopg

from config.embedded.service import free_port
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]


class Stack:
    """The supervisor and what it started."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        # The converted base model is the same for every state folder: keep one per checkout.
        cache = os.environ.get("TANDEM_MODEL_CACHE") or str(ROOT / "var" / "models")
        services = ("DATABASE_URL", "BROKER_URL", "CHANNEL_LAYER_URL", "STORAGE_URL", "POLICY_URL")
        inherited = {k: v for k, v in os.environ.items() if k not in (*services, "SECRET_KEY")}
        self.environment = inherited | {
            "TANDEM_STATE": str(state),
            "TANDEM_PORT": str(port),
            "TANDEM_MODEL_CACHE": cache,
        }
        self.output = state.with_name(f"{state.name}.out")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "config.embedded", "run"],
                cwd=ROOT,
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        until(self._ready, f"start; it said: {self.said()}", deadline_s=180)
        until(self.serves, "policy server", deadline_s=300)

    def stop(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)

    def said(self) -> str:
        return self.output.read_text() if self.output.exists() else ""

    def _ready(self) -> bool:
        assert self.process is not None and self.process.poll() is None, self.said()
        return "Tandem is ready" in self.said()

    def serves(self) -> str:
        """Return the version that the policy server answers with; "" while there is none."""
        try:
            answer = httpx.get(f"{self.services()['POLICY_URL']}/health", timeout=2)
        except httpx.HTTPError:
            return ""
        return str(answer.json().get("version", "")) if answer.status_code == 200 else ""

    def services(self) -> dict[str, str]:
        return json.loads((self.state / "state" / "services.json").read_text())

    def password(self, name: str) -> str:
        return json.loads((self.state / "state" / "demo.json").read_text())[name]

    def rows(self, query: str, *arguments: object) -> list[tuple[Any, ...]]:
        """Return what the product's own database says."""
        with psycopg.connect(self.services()["DATABASE_URL"]) as connection:
            return connection.execute(query, arguments).fetchall()

    def manage(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a command of manage.py in this stack; what it says goes to the stack's output."""
        with self.output.open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "manage.py", *words],
                cwd=ROOT, env=self.environment, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def run(self, *words: str) -> None:
        """Run a command of manage.py in this stack to its end."""
        assert self.manage(*words).wait(120) == 0, self.said()[-2000:]

    def log(self, name: str) -> str:
        return (self.state / "log" / f"{name}.log").read_text(errors="replace")

    def pids(self, *words: str) -> list[int]:
        """Return this stack's processes whose command line holds all `words`."""
        mark = f"={self.state}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                ours = mark in (entry / "environ").read_bytes() or str(self.state) in command
            except OSError:
                continue
            if ours and all(word in command for word in words):
                found.append(int(entry.name))
        return sorted(found)

    def kill(self, *words: str) -> list[int]:
        """kill -9 what `pids` finds; at least one."""
        found = self.pids(*words)
        assert found, f"no process {words}"
        for pid in found:
            os.kill(pid, signal.SIGKILL)
        return found
