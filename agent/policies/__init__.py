"""Every kind of policy, and the one place that turns a deployment into one. No Django here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from agent import dialects
from agent.dialects import tools
from agent.policies.calling import ToolPolicy
from agent.policies.openai import OpenAIPolicy
from agent.policies.scripted import ScriptedPolicy
from agent.policy import Policy, PolicyMisconfigured


class DeploymentLike(Protocol):
    """What is read of a deployment: the fields of `agent.models.Deployment`."""

    name: Any
    kind: Any
    base_url: Any
    model: Any
    reads: Any
    dialect: Any
    coordinates: Any
    history_n: Any
    temperature: Any
    max_tokens: Any
    script: Any


def load(
    deployment: DeploymentLike,
    *,
    pictures: Callable[[str], bytes],
    server: str = "",
    token: str = "",
) -> Policy:
    """Return the policy of a deployment; `pictures` opens a screenshot (PNG) by its sha256.

    `server` is the address where the deployment has none of its own, `token` the bearer token for
    either. Raises PolicyMisconfigured.
    """
    name = f"deployment {deployment.name}"
    if deployment.dialect in tools.NAMES:
        return _of_tools(deployment, name, pictures, token)
    try:
        dialect = dialects.load(deployment.dialect, deployment.coordinates)
    except ValueError as error:
        raise PolicyMisconfigured(f"{name}: {error}") from error
    if deployment.kind == "scripted":
        return ScriptedPolicy(deployment.script, dialect)
    if deployment.kind not in ("local", "openai"):
        raise PolicyMisconfigured(f"{name}: unknown kind {deployment.kind!r}")
    url = deployment.base_url or server
    if not url:
        raise PolicyMisconfigured(f"{name} has no base_url")
    return OpenAIPolicy(
        url=url,
        model=deployment.model or "tandem",
        token=token,
        dialect=dialect,
        observation_kind=deployment.reads,
        history_n=deployment.history_n,
        temperature=deployment.temperature,
        max_tokens=deployment.max_tokens,
        pictures=pictures,
        ours=deployment.kind == "local",
    )


def _of_tools(
    deployment: DeploymentLike, name: str, pictures: Callable[[str], bytes], token: str
) -> Policy:
    """Return a policy that answers in tool calls; only an endpoint of somebody else's does."""
    if deployment.kind != "openai" or deployment.reads != "screenshot":
        raise PolicyMisconfigured(
            f"{name}: {deployment.dialect} is spoken by external endpoints that read screenshots"
        )
    if not deployment.base_url or not deployment.model:
        raise PolicyMisconfigured(f"{name} needs base_url and model for {deployment.dialect}")
    return ToolPolicy(
        url=deployment.base_url,
        model=deployment.model,
        token=token,
        dialect=tools.load(deployment.dialect),
        history_n=deployment.history_n,
        temperature=deployment.temperature,
        max_tokens=deployment.max_tokens,
        pictures=pictures,
    )
