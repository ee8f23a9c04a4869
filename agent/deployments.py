"""Verbs of Deployment: which policy is the partner, what it serves, and making the server agree."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

import httpx
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from agent import policies
from agent.dialects import tools
from agent.models import Deployment
from agent.policies.wires import Chat, wire_of
from agent.policy import (
    Policy,
    PolicyError,
    PolicyMisconfigured,
    PolicyRefused,
    PolicyUnreachable,
)
from agent.rewards import OpenAIChat

log = logging.getLogger(__name__)

POLICY_TOKEN = "TANDEM_POLICY_TOKEN"
"""The variable that holds the token of our own policy servers."""

NOWHERE = "http://127.0.0.1:9"
"""The address of a server that is still to come; none at all would mean the one of POLICY_URL."""

HEALTH_S = 5.0
"""How long a server may take to say what it serves: a job asks every few seconds."""
LOAD_S = 300.0
"""How long a server may take to open a checkpoint before we look again later."""


class NoPartner(PolicyError):
    """No deployment is the partner of new sessions."""


def partner() -> Deployment:
    """Return the partner of new interactive sessions; raises NoPartner."""
    deployment = Deployment.objects.filter(is_partner=True).first()
    if deployment is None:
        raise NoPartner("no policy is deployed: choose a partner under Deployments in the admin")
    return deployment


@transaction.atomic
def set_partner(deployment: Deployment) -> Deployment:
    """Make `deployment` the only partner; sessions that run keep theirs."""
    # In the order of their keys, so that two admins wait for each other instead of deadlocking.
    rows = list(Deployment.objects.select_for_update().order_by("pk"))
    Deployment.objects.filter(is_partner=True).exclude(pk=deployment.pk).update(is_partner=False)
    chosen = next(row for row in rows if row.pk == deployment.pk)
    chosen.is_partner = True
    chosen.save(update_fields=["is_partner", "updated_at"])
    _soon()
    return chosen


@transaction.atomic
def point_at(deployment: Deployment, *, checkpoint_uri: str, version: str) -> Deployment:
    """Say what a local deployment serves; the server follows after the commit.

    Proposals come from the old version until the new one is loaded. Raises ValueError if the
    deployment is not served by our own server.
    """
    row = Deployment.objects.select_for_update().get(pk=deployment.pk)
    if row.kind != Deployment.Kind.LOCAL:
        raise ValueError(f"{row.name} is {row.get_kind_display()}: it loads no checkpoints")
    row.checkpoint_uri, row.version = checkpoint_uri, version
    row.save(update_fields=["checkpoint_uri", "version", "updated_at"])
    _soon()
    return row


def add_own(*, name: str, reads: str, dialect: str, coordinates: str, history_n: int) -> Deployment:
    """Return a new deployment for a policy server that a program starts; it has no address yet.

    It is asked with the token of POLICY_TOKEN, and nobody but that program loads weights into it.
    """
    return Deployment.objects.create(
        name=name, kind=Deployment.Kind.LOCAL, reads=reads, dialect=dialect,
        coordinates=coordinates, history_n=history_n, api_key_variable=POLICY_TOKEN,
        base_url=NOWHERE,
    )  # fmt: skip


def serves(deployment: Deployment, *, base_url: str, version: str) -> None:
    """Note where a program's own server answers, and which version; nothing is loaded by that."""
    Deployment.objects.filter(pk=deployment.pk).exclude(base_url=base_url, version=version).update(
        base_url=base_url, version=version, updated_at=timezone.now()
    )


def policy(deployment: Deployment, *, pictures: Callable[[str], bytes]) -> Policy:
    """Return the policy behind a deployment; `pictures` opens a PNG by its sha256.

    Raises PolicyMisconfigured.
    """
    return policies.load(
        deployment, pictures=pictures, server=settings.POLICY_URL, token=token_of(deployment)
    )


def chat(deployment: Deployment, *, pictures: Callable[[str], bytes]) -> OpenAIChat:
    """Return the model behind a deployment as one that answers in words, such as a judge.

    Raises PolicyMisconfigured for one that has no chat completions.
    """
    if deployment.kind == Deployment.Kind.SCRIPTED:
        raise PolicyMisconfigured(f"{deployment.name} is scripted: it answers no question")
    if deployment.dialect in tools.NAMES and not isinstance(wire_of(deployment.dialect), Chat):
        raise PolicyMisconfigured(f"{deployment.name} is asked for actions only, not in a chat")
    return OpenAIChat(
        url=_address(deployment),
        model=deployment.model or "tandem",
        pictures=pictures,
        token=token_of(deployment),
    )


def reconcile_all() -> None:
    """Make every policy server serve what its deployment says.

    A server holds one model: where several deployments name the same server the partner decides,
    else the one that was changed last. A server that can't be told now is told next time.
    """
    chosen: dict[str, Deployment] = {}
    local = Deployment.objects.filter(kind=Deployment.Kind.LOCAL).exclude(checkpoint_uri="")
    for deployment in local.order_by("is_partner", "updated_at"):
        chosen[_address(deployment)] = deployment
    for deployment in chosen.values():
        try:
            reconcile(deployment)
        except PolicyError as error:
            log.warning("deployment %s: %s", deployment.name, error)


def reconcile(deployment: Deployment) -> bool:
    """Tell the server of `deployment` to load its checkpoint if it serves another one.

    Returns whether it had to be told. Raises PolicyUnreachable (it may still be loading) and
    PolicyRefused, whose message says why the checkpoint can't be served.
    """
    address = _address(deployment)
    token = token_of(deployment)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with httpx.Client(base_url=address, headers=headers, timeout=LOAD_S) as client:
            health = client.get("/health", timeout=HEALTH_S).json()
            if (health.get("version"), health.get("checkpoint")) == (
                deployment.version,
                deployment.checkpoint_uri,
            ):
                return False
            if health.get("loading") == deployment.version:
                return False  # told before; a second request would only wait beside the first
            response = client.post(
                "/v1/load",
                json={"checkpoint": deployment.checkpoint_uri, "version": deployment.version},
            )
    except (httpx.HTTPError, ValueError) as error:
        raise PolicyUnreachable(f"{address} can't be told to load: {error!r}") from error
    if response.status_code >= 400:
        raise PolicyRefused(f"{address} refuses {deployment.version}: {response.text[:500]}")
    return True


def _address(deployment: Deployment) -> str:
    return str(deployment.base_url or settings.POLICY_URL).rstrip("/").removesuffix("/v1")


def token_of(deployment: Deployment) -> str:
    """Return the bearer token that a deployment is asked with, "" for none."""
    if deployment.api_key_variable:
        # An admin names the variable; the key itself is never stored.
        known = settings.POLICY_TOKEN if deployment.api_key_variable == POLICY_TOKEN else ""
        return os.environ.get(deployment.api_key_variable) or str(known or "")
    if not deployment.base_url:
        return str(settings.POLICY_TOKEN or "")
    return ""


def _soon() -> None:
    """Queue a reconcile after the commit; a broker that is away costs time, beat finds the rows."""
    from agent import jobs

    transaction.on_commit(lambda: jobs.reconcile.apply_async(retry=False), robust=True)
