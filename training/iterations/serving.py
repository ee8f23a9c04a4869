"""Who plays for a chain of iterations: a policy server of its own, beside the annotators' one.

The driver asks whether it is `ready`; a job on the training queue does what follows (`keep`), with
`training.streaming.servers`. `keep` may run twice, never, or die at any line. Instead of its own
server a chain may use a deployment that was chosen for it; never the annotators' partner.
"""

from __future__ import annotations

import datetime as dt
import socket
from pathlib import Path
from typing import Any

import httpx
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from agent import deployments, dialects
from agent.models import Deployment
from training import jobs
from training.data.rows import PromptFormat
from training.iterations.phases import model_of
from training.models import Checkpoint, Iteration
from training.runs import process
from training.streaming import servers

PATIENCE = dt.timedelta(minutes=15)
"""How long a server may take: the first one on a machine converts the base model."""
HEALTH_S = 5.0
FOLDER = ".iterations"  # in RUNS_DIR; no run can be called so


class ServerFailed(Exception):
    """The policy server does not come up; the message says why."""


def ready(row: Iteration, wanted: Checkpoint) -> bool:
    """Whether the iteration's server answers with `wanted`; has it started or told where not.

    Raises ServerFailed where it refuses the checkpoint, or has not come up for PATIENCE.
    """
    server = row.server or link_server(row, wanted)
    mine = Iteration.objects.filter(pk=row.pk)
    if _serves(server, wanted):
        deployments.serves(server, base_url=server.base_url, version=wanted.version)
        if row.server_since is not None:
            mine.update(server_since=None, server_trouble="", server_refuses="")
        return True
    if row.server_refuses == wanted.version:
        raise ServerFailed(row.server_trouble)
    if row.server_since is None:
        mine.update(server_since=timezone.now(), server_refuses="")
    elif timezone.now() - row.server_since > PATIENCE:
        minutes = PATIENCE.total_seconds() / 60
        raise ServerFailed(
            f"the policy server of {wanted.version} is not there after {minutes:g} min: "
            f"{row.server_trouble or 'no worker of the training queue has started it'}"
        )
    ask(row)
    return False


def ask(row: Iteration) -> None:
    """Queue a look at the server; a lost message is sent again by the next look."""
    jobs.keep_iteration_server.apply_async((row.pk,), retry=False, expires=60)


def keep(iteration_id: int) -> None:
    """Make the server be what the iteration wants: started, with another model, or stopped."""
    row = Iteration.objects.select_related("server").filter(pk=iteration_id).first()
    if row is None or row.server is None:
        return
    with transaction.atomic():
        # The server's row is the lock: people's verbs on the iteration need not wait for a load.
        locked = Deployment.objects.select_for_update(skip_locked=True)
        if locked.filter(pk=row.server_id).exists():
            _keep(row, row.server, model_of(row))


def _keep(row: Iteration, server: Deployment, wanted: Checkpoint | None) -> None:
    here = socket.gethostname()[:128]
    mine = Iteration.objects.filter(pk=row.pk)
    folder = Path(settings.RUNS_DIR) / FOLDER / server.name
    if wanted is None:
        if row.own_server and row.server_host == here:
            servers.stop(folder)
            mine.update(server_host="")
        return
    address = server.base_url
    try:
        if row.own_server:
            mine.update(server_host=here)
            address = servers.ensure(folder, wanted.uri, wanted.version)
        else:
            token = deployments.token_of(server)
            servers.load(address, wanted.uri, wanted.version, token=token)
    except servers.NotUp as error:
        mine.update(server_trouble=str(error))
    except servers.CantServe as error:
        mine.update(server_trouble=str(error), server_refuses=wanted.version)
    else:
        deployments.serves(server, base_url=address, version=wanted.version)


def stop_unwanted() -> None:
    """Ask for the servers to be stopped that no iteration needs at the moment."""
    for row in Iteration.objects.exclude(server_host=""):
        if model_of(row) is None:
            ask(row)


def stop_here() -> None:
    """Stop every such server on this machine: its worker goes down, the next look starts it anew."""
    for lock in (Path(settings.RUNS_DIR) / FOLDER).glob(f"*/{process.LOCK}"):
        servers.stop(lock.parent)


def link_server(row: Iteration, wanted: Checkpoint) -> Deployment:
    """Return the deployment of the chain's own server, made with the link in one transaction."""
    form = PromptFormat.of_manifest(wanted.manifest)
    with transaction.atomic():
        locked = Iteration.objects.select_for_update(of=("self",)).get(pk=row.pk)
        if locked.server is None:
            locked.server = deployments.add_own(
                name=f"flywheel-{row.name}",
                reads=form.observation,
                dialect=form.dialect,
                coordinates=form.coordinates or dialects.load(form.dialect).coordinates,
                history_n=form.history_n,
            )
            # It is measured as it would answer beside the annotators.
            locked.server.max_tokens = row.deployment.max_tokens
            locked.server.save(update_fields=["max_tokens"])
            locked.save(update_fields=["server"])
    row.server = locked.server
    return locked.server


def _serves(server: Deployment, wanted: Checkpoint) -> bool:
    """Whether the server answers with exactly these weights."""
    token = deployments.token_of(server)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    address = server.base_url.rstrip("/").removesuffix("/v1")
    try:
        answer = httpx.get(f"{address}/health", headers=headers, timeout=HEALTH_S, trust_env=False)
        health: Any = answer.json()
    except (httpx.HTTPError, ValueError):
        return False
    return isinstance(health, dict) and (health.get("version"), health.get("checkpoint")) == (
        wanted.version, wanted.uri,
    )  # fmt: skip
