"""From the annotator's accept to the next proposal on the page, minus the model's own time.

`python -m benchmarks.decision [--decisions N]`. Everything is real but the model: embedded
PostgreSQL, Valkey and S3, the web server, a local desktop with Chromium, and a policy server that
thinks for exactly MODEL_S. The clock starts before the POST and stops when the hint has come over
the socket and the panel with the new proposals has been fetched.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import connect

from config.embedded import s3, valkey
from config.embedded.postgres import Postgres, reachable
from config.embedded.s3 import PORTS, ObjectStore
from config.embedded.service import (
    Account,
    Service,
    free_port,
    free_ports,
    launch,
    stop,
    unprivileged,
    wait_ready,
)  # fmt: skip
from config.embedded.valkey import Valkey

MODEL_S = 0.2
AIM_MS = 150
WARM_UP = 3
PASSWORD = secrets.token_urlsafe(12)


class Model(BaseHTTPRequestHandler):
    """An OpenAI-compatible endpoint that takes MODEL_S and clicks into the page's text box."""

    place = (0, 0)

    def do_POST(self) -> None:
        began = time.perf_counter()
        self.rfile.read(int(self.headers["Content-Length"]))
        x, y = self.place
        text = f"Thought: I click.\nAction: click(start_box='<|box_start|>({x},{y})<|box_end|>')"
        choice = {"message": {"role": "assistant", "content": text}}
        body = json.dumps({"model": "bench", "choices": [choice] * 3}).encode()
        time.sleep(max(MODEL_S - (time.perf_counter() - began), 0))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def running(service: Service, account: Account | None, logs: Path) -> Iterator[None]:
    log = logs / f"{service.name}.log"
    service.prepare()
    process = launch(service, log=log, account=account)
    try:
        wait_ready(service, process, log=log, deadline_s=60)
        yield
    finally:
        stop(service, process)


@contextmanager
def web(environment: dict[str, str], log: Path) -> Iterator[str]:
    """Run the web server as `make run` does."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [
        sys.executable, "-m", "uvicorn", "config.asgi:application", "--host", "127.0.0.1",
        "--port", str(port), "--ws", "websockets-sansio", "--ws-per-message-deflate", "false",
        "--no-access-log",
    ]  # fmt: skip
    with open(log, "wb") as out:
        process = subprocess.Popen(
            command, env={**environment, "DATABASE_POOL": "8"}, stdout=out, stderr=out
        )
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                httpx.get(f"{url}/accounts/login/")
                break
            except httpx.HTTPError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(
                        f"the web did not start:\n{log.read_text()[-2000:]}"
                    ) from None
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(10)


@contextmanager
def services(root: Path) -> Iterator[None]:
    """Start the embedded services and put their addresses into the environment."""
    logs = root / "log"
    logs.mkdir()
    account = unprivileged()
    postgres = Postgres(
        data=root / "postgres", port=free_port(), password=secrets.token_hex(8), account=account,
        install=reachable(account, root / "binaries"),
    )  # fmt: skip
    broker = Valkey(root / "valkey", free_port(), secrets.token_hex(8), account, valkey.installed())
    store = ObjectStore(
        root / "s3", free_ports(PORTS), secrets.token_hex(8), secrets.token_hex(16),
        secrets.token_hex(16), account, s3.installed(),
    )  # fmt: skip
    with ExitStack() as stack:
        for service in (postgres, broker, store):
            stack.enter_context(running(service, account, logs))
        postgres.make_database("tandem")
        os.environ.update(
            TANDEM_STATE=str(root),
            DATABASE_URL=postgres.url("tandem"),
            BROKER_URL=broker.url(0),
            CHANNEL_LAYER_URL=broker.url(1),
            STORAGE_URL=store.url(),
            SECRET_KEY=secrets.token_hex(32),
            DJANGO_SETTINGS_MODULE="config.settings",
            LOG_LEVEL="WARNING",
        )
        yield


@contextmanager
def desktop(root: Path) -> Iterator[None]:
    """Put one real desktop into the pool."""
    from django.utils import timezone

    from sandbox.images import spec_for
    from sandbox.models import Sandbox
    from sandbox.providers.local import LocalProvider

    provider = LocalProvider(root / "sandboxes")
    row = Sandbox.objects.create(
        name=f"bench-{secrets.token_hex(3)}", provider="local", host="bench"
    )
    handle = provider.start(spec_for(row))
    try:
        row.handle = Sandbox.handle_record(handle)
        row.state, row.ready_at = Sandbox.State.READY, timezone.now()
        row.save()
        yield
    finally:
        provider.stop(handle)


def ready_session(policy: str) -> int:
    """Create a person, a task and a deployment, and bring a session to its first proposals."""
    from django.contrib.auth.models import Group, User

    from agent.models import Deployment
    from annotation import jobs
    from annotation.session import preparing, sessions, steps
    from annotation.tasks import tasks

    user = User.objects.create_user("bench", password=PASSWORD)
    user.groups.add(Group.objects.get_or_create(name="annotator")[0])
    tasks.create(
        external_id="bench",
        instruction="Click into the text box.",
        setup=[{"kind": "miniwob", "page": "enter-text", "seed": 7}],
    )
    Deployment.objects.create(
        name="bench", kind="openai", base_url=policy, model="bench", reads="elements",
        dialect="box", coordinates="frame", is_partner=True,
    )  # fmt: skip
    jobs.soon = lambda job, row_id: None  # nobody listens to the queue here
    session = sessions.start(user=user)
    preparing.prepare(session.pk)
    point = steps.current(session)
    session.refresh_from_db()
    if point is None or point.observation is None:
        raise RuntimeError(f"no first proposals: {session.stage} {session.error}")
    box = next(e for e in point.observation["elements"] if e["role"] == "textbox")["box"]
    Model.place = (box[0] + box[2] // 2, box[1] + box[3] // 2)
    steps.request_proposals(session, fence=session.fence)
    return session.pk


def wait_for_proposals(page: httpx.Client, session_id: int) -> str:
    """Fetch the panel until it shows proposals; return it."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        panel = page.get(f"/sessions/{session_id}/panel/").text
        if 'data-phase="ready"' in panel:
            return panel
        time.sleep(0.05)
    raise RuntimeError(f"no proposals in 30 s:\n{panel[:500]}")


def decide(page: httpx.Client, socket: Any, session_id: int) -> dict[str, float]:
    """Accept the first proposal; return how long each part took, in ms."""
    from annotation.models import DecisionPoint

    point = DecisionPoint.objects.filter(session_id=session_id).latest("pk")
    body = {
        "fence": point.session.fence,
        "decision_point": point.pk,
        "proposal_rank": 1,
        "seen": point.screenshot,
        "active_ms": 500,
    }
    token = page.cookies["csrftoken"]
    began = time.perf_counter()
    answer = page.post(f"/sessions/{session_id}/decide/", json=body, headers={"X-CSRFToken": token})
    posted = time.perf_counter()
    if answer.status_code != 200:
        raise RuntimeError(f"decide: {answer.status_code} {answer.text[:300]}")
    while json.loads(socket.recv(timeout=30))["changed"] != "proposals":
        pass
    hinted = time.perf_counter()
    panel = page.get(f"/sessions/{session_id}/panel/").text
    ended = time.perf_counter()
    if not re.search(r'data-phase="ready"', panel):
        raise RuntimeError(f"the hint came before the proposals:\n{panel[:500]}")
    after = DecisionPoint.objects.filter(session_id=session_id).latest("pk")
    assert after.pk != point.pk
    whole = (ended - began) * 1000
    return {
        "accept → on the page, minus the model": whole - MODEL_S * 1000,
        "of it: POST answered": (posted - began) * 1000,
        "of it: executed, settled, observed, asked, hinted": (
            (hinted - posted) * 1000 - MODEL_S * 1000
        ),
        "of it: panel fetched": (ended - hinted) * 1000,
    }


def measure(url: str, session_id: int, decisions: int) -> list[dict[str, float]]:
    with httpx.Client(base_url=url, follow_redirects=True) as page:
        page.get("/accounts/login/")
        page.post(
            "/accounts/login/",
            data={
                "username": "bench",
                "password": PASSWORD,
                "csrfmiddlewaretoken": page.cookies["csrftoken"],
            },
        )
        cookie = f"sessionid={page.cookies['sessionid']}"
        address = f"{url.replace('http', 'ws')}/ws/session/{session_id}/"
        with connect(address, additional_headers={"Cookie": cookie}, origin=url) as socket:  # type: ignore[arg-type]
            wait_for_proposals(page, session_id)
            figures = []
            for number in range(WARM_UP + decisions):
                # A person looks first; the desktop and the browser are at rest when she decides.
                time.sleep(0.3)
                figures.append(decide(page, socket, session_id))
                print(f"\r{number + 1}/{WARM_UP + decisions}", end="", file=sys.stderr, flush=True)
            print(file=sys.stderr)
    return figures[WARM_UP:]


def table(figures: list[dict[str, float]]) -> str:
    """Return the figures as Markdown."""
    lines = ["| ms | p50 | p95 | max |", "|---|---|---|---|"]
    for name in figures[0]:
        values = sorted(row[name] for row in figures)
        p95 = values[min(len(values) - 1, round(0.95 * (len(values) - 1)))]
        lines.append(f"| {name} | {statistics.median(values):.0f} | {p95:.0f} | {values[-1]:.0f} |")
    first = next(iter(figures[0]))
    values = sorted(row[first] for row in figures)
    p95 = values[min(len(values) - 1, round(0.95 * (len(values) - 1)))]
    verdict = "reached" if p95 < AIM_MS else "missed"
    lines.append(f"\nAim: p95 under {AIM_MS} ms. {verdict.capitalize()}: {p95:.0f} ms.")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=60)
    options = parser.parse_args()
    model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="tandem-bench-") as folder, ExitStack() as stack:
        root = Path(folder)
        root.chmod(0o755)  # the services' account passes through it
        stack.enter_context(services(root))
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        stack.enter_context(desktop(root))
        session_id = ready_session(f"http://127.0.0.1:{model.server_port}")
        url = stack.enter_context(web(dict(os.environ), root / "web.log"))
        print(table(measure(url, session_id, options.decisions)))


if __name__ == "__main__":
    main()
