"""The pods of one host in a cluster: made, claimed by compare-and-swap, watched, removed.

Every call has a deadline. What the API server refuses or does not answer is a SandboxError.
"""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from sandbox.provider import ProvisionFailed, SandboxError, SandboxSpec
from sandbox.providers.kubernetes import identity
from sandbox.providers.kubernetes.cluster import DOOR_PORT, Cluster
from sandbox.providers.tunnel import Way

SANDBOX, HOST, STATE, SIZE = "tandem/sandbox", "tandem/host", "tandem/state", "tandem/size"
_APP = {"app.kubernetes.io/name": "tandem-sandbox"}
_WITHIN_S = (5, 30)  # to connect, to answer
_POLL_S = 0.2
_ORPHAN_AFTER = timedelta(minutes=10)
_GONE, _CONFLICT = 404, 409
# Waiting reasons that no patience helps against.
_HOPELESS = {
    "ErrImageNeverPull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "RunContainerError",
}
Pod = Any


class Pods:
    """What one host does in its namespace. Pods are objects of the official client."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._api = cluster.api()

    def close(self) -> None:
        """Let go of the connections."""
        self._api.api_client.close()

    def create(self, spec: SandboxSpec, *, sandbox: str) -> Pod:
        """Make a pod for `sandbox`, or a warm one if that is empty."""
        name = f"tandem-{secrets.token_hex(6)}"
        labels = {
            **_APP,
            HOST: self._cluster.host,
            STATE: "leased" if sandbox else "warm",
            SIZE: f"{spec.width}x{spec.height}",
            **({SANDBOX: sandbox} if sandbox else {}),
        }
        pod = self._cluster.pod(name, spec, labels)
        files = {
            file: base64.b64encode(data).decode()
            for file, data in identity.make(name).files().items()
        }
        secret = {
            "metadata": {"name": name, "labels": {**_APP, HOST: self._cluster.host}},
            "data": files,
        }
        with _named("create a pod"):
            self._ask(self._api.create_namespaced_secret, body=secret)
            made = self._ask(self._api.create_namespaced_pod, body=pod)
            owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": made.metadata.uid}
            # From here on the cluster removes the secret together with its pod.
            self._ask(
                self._api.patch_namespaced_secret,
                name=name,
                body={"metadata": {"ownerReferences": [owner]}},
            )
        return made

    def claim(self, spec: SandboxSpec, *, sandbox: str) -> Pod | None:
        """Take the oldest warm pod of the right size that is ready; None if there is none.

        The patch carries the version that was read: of two hosts' claims one is refused.
        """
        size = f"{spec.width}x{spec.height}"
        warm = [pod for pod in self.list(STATE, "warm") if pod.metadata.labels.get(SIZE) == size]
        for pod in sorted(warm, key=lambda pod: pod.metadata.creation_timestamp):
            if not ready(pod) or pod.metadata.deletion_timestamp is not None or _old(pod):
                continue
            version = pod.metadata.resource_version
            change = {"resourceVersion": version, "labels": {STATE: "leased", SANDBOX: sandbox}}
            try:
                with _named("claim a pod"):
                    return self._ask(
                        self._api.patch_namespaced_pod,
                        name=pod.metadata.name,
                        body={"metadata": change},
                    )
            except _Refused as error:
                if error.status not in (_CONFLICT, _GONE):
                    raise
        return None

    def list(self, key: str, value: str) -> list[Pod]:
        """Return this host's pods with the label `key`=`value`."""
        selector = f"{HOST}={self._cluster.host},{key}={value}"
        with _named("list pods"):
            found = self._ask(self._api.list_namespaced_pod, label_selector=selector)
        return list(found.items)

    def read(self, name: str) -> Pod | None:
        """Return a pod; None if it is gone."""
        try:
            with _named("read a pod"):
                return self._ask(self._api.read_namespaced_pod, name=name)
        except _Refused as error:
            if error.status == _GONE:
                return None
            raise

    def wait(self, name: str) -> Pod:
        """Return the pod once all its containers are ready; raises ProvisionFailed with the cause."""
        deadline = time.monotonic() + self._cluster.ready_within_s
        while True:
            pod = self.read(name)
            if pod is None or pod.metadata.deletion_timestamp is not None:
                raise ProvisionFailed(f"pod {name} was deleted while it started")
            if ready(pod):
                return pod
            why = state(pod)
            if pod.status.phase in ("Failed", "Succeeded") or _hopeless(pod):
                raise ProvisionFailed(f"pod {name}: {why}: {self.log(name)}")
            if time.monotonic() > deadline:
                limit = f"{self._cluster.ready_within_s:g} s"
                raise ProvisionFailed(f"pod {name} was not ready within {limit}: {why}")
            time.sleep(_POLL_S)

    def way(self, pod: Pod) -> tuple[Way, str]:
        """Return how to reach a pod, and its screen's password."""
        name = pod.metadata.name
        with _named("read a secret"):
            data = self._ask(self._api.read_namespaced_secret, name=name).data
        files = {file: base64.b64decode(text).decode("latin-1") for file, text in data.items()}
        ip = pod.status.pod_ip
        door = f"door://{f'[{ip}]' if ':' in ip else ip}:{DOOR_PORT}"
        way = Way(door, door, certificate=files["certificate"], secret=files["secret"])
        return way, files["password"]

    def delete(self, name: str, *, uid: str = "") -> None:
        """Remove a pod (that very one, if `uid` is given) and its secret; fine if they are gone."""
        options = client.V1DeleteOptions(grace_period_seconds=0)
        if uid:
            options.preconditions = client.V1Preconditions(uid=uid)
        for delete, body in (
            (self._api.delete_namespaced_pod, options),
            (self._api.delete_namespaced_secret, None),
        ):
            try:
                with _named("delete a pod"):
                    self._ask(delete, name=name, body=body)
            except _Refused as error:
                if error.status == _CONFLICT:
                    return  # the name is another pod's by now
                if error.status != _GONE:
                    raise

    def log(self, name: str) -> str:
        """Return the end of what the desktop printed."""
        try:
            with _named("read a log"):
                text = self._ask(
                    self._api.read_namespaced_pod_log,
                    name=name,
                    container="desktop",
                    tail_lines=20,
                    limit_bytes=4096,
                )
        except SandboxError:
            return "no log"
        return str(text)[-1500:].strip() or "the log is empty"

    def top_up(self, spec: SandboxSpec) -> None:
        """Have as many warm pods as cluster.toml says; remove old and failed ones, and lost secrets."""
        warm = self.list(STATE, "warm")
        dead = [pod for pod in warm if pod.status.phase in ("Failed", "Succeeded") or _old(pod)]
        for pod in dead:
            self.delete(pod.metadata.name, uid=pod.metadata.uid)
        for _ in range(self._cluster.warm - (len(warm) - len(dead))):
            self.create(spec, sandbox="")
        self._sweep()

    def _sweep(self) -> None:
        """Remove secrets whose pod was never made: who made them was killed in between."""
        selector = f"{HOST}={self._cluster.host}"
        with _named("list secrets"):
            found = self._ask(self._api.list_namespaced_secret, label_selector=selector)
        for secret in found.items:
            age = datetime.now(UTC) - secret.metadata.creation_timestamp
            if not secret.metadata.owner_references and age > _ORPHAN_AFTER:
                self.delete(secret.metadata.name)

    def _ask(self, call: Callable[..., Any], **arguments: object) -> Any:
        if arguments.get("body", ...) is None:
            del arguments["body"]
        return call(namespace=self._cluster.namespace, _request_timeout=_WITHIN_S, **arguments)


class _Refused(SandboxError):
    """The API server said no; `status` is HTTP's."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@contextmanager
def _named(what: str) -> Iterator[None]:
    try:
        yield
    except ApiException as error:
        body = str(error.body or "")[:500]
        raise _Refused(
            f"can't {what}: {error.status} {error.reason} {body}", error.status
        ) from error
    except ValueError as error:  # the client checks manifests and answers, by pydantic and json
        raise SandboxError(f"can't {what}: {error}") from error
    except (HTTPError, OSError) as error:
        raise SandboxError(f"can't {what}: the cluster does not answer: {error}") from error


def ready(pod: Pod) -> bool:
    """Whether every container of a pod is ready, and it can be reached."""
    conditions = {c.type: c.status for c in pod.status.conditions or []}
    return bool(conditions.get("Ready") == "True" and pod.status.pod_ip)


def _old(pod: Pod) -> bool:
    """Whether a warm pod has waited for half the time that it has: it would end in somebody's work."""
    limit = pod.spec.active_deadline_seconds
    age = datetime.now(UTC) - pod.metadata.creation_timestamp
    return limit is not None and age > timedelta(seconds=limit / 2)


def state(pod: Pod) -> str:
    """Say in words what a pod waits for, or what ended it."""
    words = []
    for container in _statuses(pod):
        waiting, ended = container.state.waiting, container.state.terminated
        if waiting is not None and waiting.reason not in ("PodInitializing", "ContainerCreating"):
            words.append(
                f"{container.name} waits: {waiting.reason} {waiting.message or ''}".strip()
            )
        if ended is not None and (ended.exit_code or ended.reason != "Completed"):
            words.append(f"{container.name} ended with status {ended.exit_code}: {ended.reason}")
    for condition in pod.status.conditions or []:
        if condition.status == "False" and condition.reason == "Unschedulable":
            words.append(f"no node has room: {condition.message}")
    if pod.status.reason:
        words.append(f"{pod.status.reason} {pod.status.message or ''}".strip())
    return "; ".join(words) or f"it is {pod.status.phase}"


def _hopeless(pod: Pod) -> bool:
    reasons = [c.state.waiting.reason for c in _statuses(pod) if c.state.waiting is not None]
    return bool(_HOPELESS.intersection(reasons))


def _statuses(pod: Pod) -> list[Any]:
    status = pod.status
    both = [*(status.init_container_statuses or []), *(status.container_statuses or [])]
    return [container for container in both if container.state is not None]
