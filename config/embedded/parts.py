"""What `make run` consists of: each part's command, what it waits for, and how one sees that it is ready."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from config.embedded import checks, s3, valkey
from config.embedded.postgres import Postgres, reachable
from config.embedded.s3 import ObjectStore
from config.embedded.service import Account, Service, StartFailed, runnable, unprivileged
from config.embedded.state import State
from config.embedded.valkey import Valkey

ROOT = Path(__file__).resolve().parent.parent.parent
DATABASE = "tandem"


@dataclass(frozen=True)
class Part:
    """One child of the supervisor.

    `ready` gets the log of this start so far; a part that is `once` is ready when it has ended well.
    One that is not `awaited` may still be starting when the address is printed.
    """

    name: str
    command: list[str]
    environment: dict[str, str]
    ready: Callable[[str], bool]
    needs: tuple[str, ...] = ()
    prepare: Callable[[], None] = lambda: None
    account: Account | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    once: bool = False
    awaited: bool = True
    patience_s: float = 60
    layer: int = 1  # stopped from the highest down


@dataclass
class Plan:
    """All parts of a start, and where the product answers."""

    parts: list[Part] = field(default_factory=list)
    addresses: dict[str, str] = field(default_factory=dict)
    url: str = ""
    notes: list[str] = field(default_factory=list)


def plan(state: State, environment: dict[str, str]) -> Plan:
    """Return what to start; a service whose variable is set is somebody else's and left out."""
    made = Plan()
    secret, port = state.secret(), state.ports()
    _services(made, state, environment, secret, port)
    made.addresses["SECRET_KEY"] = secret["django"]
    made.addresses["TANDEM_POLICY_TOKEN"] = secret["policy"]
    if not environment.get("POLICY_URL"):
        made.addresses["POLICY_URL"] = f"http://127.0.0.1:{port['policy']}"
    # The environment wins over the embedded addresses, here as in config.env.
    child = {
        **made.addresses, **environment,
        "TANDEM_STATE": str(state.root), "DJANGO_SETTINGS_MODULE": "config.settings",
        "PYTHONUNBUFFERED": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false",
        "PATH": f"{Path(sys.executable).parent}:{environment.get('PATH', os.defpath)}",
    }  # fmt: skip
    child.setdefault("TANDEM_MODEL_CACHE", str(state.root / "models"))
    _processes(made, state, child, port)
    return made


def _services(
    made: Plan, state: State, environment: dict[str, str],
    secret: dict[str, str], port: dict[str, int],
) -> None:  # fmt: skip
    account = unprivileged()
    home = state.services(account)
    spare = home / "binaries"
    if home != state.root:
        made.notes.append(
            f"The account {account.name} cannot pass through to {state.root}: "
            f"PostgreSQL's, Valkey's and S3's data lie in {home}"
        )
    if not environment.get("DATABASE_URL"):
        postgres = Postgres(
            home / "postgres", port["postgres"], secret["postgres"], account,
            reachable(account, spare),
        )  # fmt: skip
        made.addresses["DATABASE_URL"] = postgres.url(DATABASE)

        def database(_: str) -> bool:
            if not postgres.ready():
                return False
            postgres.make_database(DATABASE)
            return True

        made.parts.append(_service(postgres, account, database))
    if not (environment.get("BROKER_URL") and environment.get("CHANNEL_LAYER_URL")):
        broker = Valkey(
            home / "valkey", port["valkey"], secret["valkey"], account,
            runnable(account, valkey.installed(), spare),
        )  # fmt: skip
        made.addresses["BROKER_URL"] = broker.url(0)
        made.addresses["CHANNEL_LAYER_URL"] = broker.url(1)
        made.parts.append(_service(broker, account, lambda _: broker.ready()))
    if not environment.get("STORAGE_URL"):
        store = ObjectStore(
            home / "s3", [port[f"s3-{index}"] for index in range(8)],
            secret["s3-key"], secret["s3"], secret["signing"], account,
            runnable(account, s3.installed(), spare),
        )  # fmt: skip
        made.addresses["STORAGE_URL"] = store.url()
        made.parts.append(_service(store, account, lambda _: store.ready()))


def _service(service: Service, account: Account, ready: Callable[[str], bool]) -> Part:
    return Part(
        service.name, service.command(), service.environment(), ready,
        prepare=service.prepare, account=account, stop_signal=service.stop_signal, layer=0,
    )  # fmt: skip


def _processes(made: Plan, state: State, child: dict[str, str], port: dict[str, int]) -> None:
    services = tuple(part.name for part in made.parts)

    def add(name: str, *command: str, ready: Callable[[str], bool], **rest: Any) -> None:
        environment = {**child, **rest.pop("extra", {})}
        made.parts.append(Part(name, [sys.executable, *command], environment, ready, **rest))

    if "POLICY_URL" in made.addresses:
        url = made.addresses["POLICY_URL"]
        add(
            "policy", "-m", "agent.serving", "--port", str(port["policy"]),
            "--state", str(state.root / "policy"), *box_checkpoint(),
            ready=lambda _: _answers(f"{url}/health"),
            awaited=False, patience_s=900,  # the first start converts the base model
        )  # fmt: skip
    # A start that finds what the last one set up has no need to look again.
    base = services
    if setup_is_due(state, child):
        add(
            "setup", "manage.py", "demo",
            ready=lambda _: True, needs=services, once=True, patience_s=180,
        )  # fmt: skip
        base = ("setup",)
    host = child.get("TANDEM_BIND") or "127.0.0.1"
    web = port_of(child.get("TANDEM_PORT") or "8000")
    checks.web_port(host, web)
    made.url = f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{web}"
    add(
        "web", "-m", "uvicorn", "config.asgi:application", "--host", host, "--port", str(web),
        "--ws", "websockets-sansio", "--ws-per-message-deflate", "false",
        "--no-access-log", "--timeout-graceful-shutdown", "2",
        # Of whatever kind: the name of a probe need not be one of ALLOWED_HOSTS.
        ready=lambda _: _answers(f"{made.url}/accounts/login/", least=200, most=499),
        needs=base, extra={"DATABASE_POOL": child.get("DATABASE_POOL") or "8"},
    )  # fmt: skip
    add(
        "sandbox", "manage.py", "sandbox_host", "--stop-desktops-on-exit",
        ready=lambda log: "sandbox host" in log, needs=base,
    )  # fmt: skip
    add(
        "rollouts", "manage.py", "rollout_worker",
        ready=lambda log: "rollout worker" in log, needs=base,
    )  # fmt: skip
    for queue, threads in (("default", 2), ("agent", 4), ("training", 1)):
        add(
            f"worker-{queue}", "-m", "celery", "-A", "config", "worker", "-n", f"{queue}@%h",
            "-Q", queue, "-P", "threads", "-c", str(threads), "-l", "INFO",
            "--without-gossip", "--without-mingle", "--without-heartbeat",
            ready=lambda log: " ready." in log, needs=base,
        )  # fmt: skip
    add(
        "beat", "-m", "celery", "-A", "config", "beat", "-l", "INFO", "--pidfile=",
        # Intervals only, so nothing needs remembering, and no file can break in a kill.
        "--scheduler", "celery.beat:Scheduler",
        ready=lambda log: "beat: Starting" in log, needs=base,
    )  # fmt: skip


def box_checkpoint() -> list[str]:
    """Return the option that serves the model in the box where none was served before."""
    box = ROOT / "agent" / "box"
    return ["--checkpoint", str(box)] if (box / "tandem.json").exists() else []


def fingerprint() -> str:
    """Return a hash of all that the setup depends on: migrations, the demo, the model in the box."""
    digest = hashlib.sha256()
    for path in sorted(
        (
            *ROOT.glob("*/migrations/*.py"),
            ROOT / "config/demo.py",
            ROOT / "annotation/tasks/demo.py",
            ROOT / "agent/box/tandem.json",
        )
    ):
        if path.exists():
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def setup_is_due(state: State, environment: dict[str, str]) -> bool:
    """Return whether migrations or the demo may be missing; always for a database of others."""
    ours = environment.get("DATABASE_URL", "").endswith(
        f"@127.0.0.1:{state.ports()['postgres']}/{DATABASE}"
    )
    return not ours or state.read("setup.json").get("fingerprint") != fingerprint()


def setup_is_done(state: State) -> None:
    """Note what the setup of this start has seen."""
    state.write("setup.json", {"fingerprint": fingerprint()})


def port_of(text: str) -> int:
    """Return TANDEM_PORT as a number; raises StartFailed."""
    if not (text.isdecimal() and text.isascii() and 0 < int(text[:6]) < 1 << 16):
        raise StartFailed(f"TANDEM_PORT={text!r}: say a number from 1 to 65535")
    return int(text)


def _answers(url: str, *, least: int = 200, most: int = 200) -> bool:
    try:
        return least <= httpx.get(url, timeout=2, trust_env=False).status_code <= most
    except httpx.HTTPError:
        return False
