"""A policy server of our own in a subprocess, for tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx

from config.embedded.service import free_port

TOKEN = "a-test-token"


class Server:
    """One server process on a free port; start, kill and start again on the same state."""

    def __init__(self, state: Path, checkpoint: Path, **environment: str) -> None:
        self.state, self.checkpoint, self.environment = state, checkpoint, environment
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self.client = httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60
        )

    def start(self, *options: str, deadline_s: float = 90) -> Server:
        self.state.mkdir(parents=True, exist_ok=True)
        with (self.state / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "agent.serving",
                    "--port",
                    str(self.port),
                    "--state",
                    str(self.state),
                    "--checkpoint",
                    str(self.checkpoint),
                    "--threads",
                    "1",
                    *options,
                ],
                env={**os.environ, "TANDEM_POLICY_TOKEN": TOKEN, **self.environment},
                stdout=log,
                stderr=log,
            )
        end = time.monotonic() + deadline_s
        while self.health().get("status") != "ok":
            assert self.process.poll() is None, (self.state / "log").read_text()
            assert time.monotonic() < end, (self.state / "log").read_text()
            time.sleep(0.05)
        return self

    def health(self) -> dict:
        try:
            return self.client.get("/health").json()
        except httpx.HTTPError:
            return {}

    def stop(self, sign: int = signal.SIGTERM) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(sign)
            self.process.wait(30)

    def ask(self, content="hello", **options) -> httpx.Response:
        body = {"messages": [{"role": "user", "content": content}], "max_tokens": 16, **options}
        return self.client.post("/v1/chat/completions", json=body)

    def load(self, checkpoint, version) -> httpx.Response:
        return self.client.post(
            "/v1/load", json={"checkpoint": str(checkpoint), "version": version}
        )
