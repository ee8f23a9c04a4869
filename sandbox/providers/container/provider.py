"""The container provider: one container per sandbox, its sockets in a folder bound into it.

Everything of a sandbox but the container is in STATE/<name>/, as with the local provider, and both
outlive the process that started them. The engine has to be of this machine: its containers'
processes and folders are looked at directly.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import requests
from docker.errors import APIError, DockerException, NotFound

from sandbox.desktop import GuestDesktop
from sandbox.images import container as image
from sandbox.provider import (
    Desktop,
    DesktopLost,
    Handle,
    ProvisionFailed,
    SandboxError,
    SandboxSpec,
)
from sandbox.providers import folder, records
from sandbox.providers.container import engine
from sandbox.providers.container.shape import LABEL, Shape, container_name

_FIRST_UID, _UIDS = 60_500, 500
_START_TIMEOUT_S = 40.0
_LOG_TAIL = 1500
_LIMITS = "container"


class ContainerProvider:
    """Starts, finds and stops containers below one folder; several processes may use it at once."""

    name = "container"

    def __init__(self, state: Path) -> None:
        self._state = state.absolute()

    def start(self, spec: SandboxSpec) -> Handle:
        """Bring a desktop up; about 1 s. Raises ProvisionFailed with the stage and the log."""
        _check_host()
        target = self._state / spec.name
        records.check(spec, provider=self.name, socket=target / "run" / "guest.sock")
        with _engine() as client:
            if not client.images.list(name=image.tag()):
                raise ProvisionFailed(
                    f"no image {image.tag()}: python -m sandbox.images build container"
                )
            with (
                folder.own_uid(_FIRST_UID, _UIDS) as uid,
                folder.begun(target, lambda: self._clear(client, target)),
            ):
                return self._start(client, spec, target, uid)

    def connect(self, handle: Handle) -> Desktop:
        """Return the desktop behind `handle`; raises DesktopLost with what ended its container."""
        if not self.alive(handle):
            raise DesktopLost(f"{handle.name} does not run any more: {self._cause(handle)}")
        return GuestDesktop(handle)

    def alive(self, handle: Handle) -> bool:
        """Whether the very process of `handle` still runs; says nothing of its guest."""
        return records.runs(handle.pid, handle.boot_id)

    def stop(self, handle: Handle) -> None:
        """Remove the sandbox's container with every process in it, and its folder."""
        record = records.load(self._state / handle.name)
        if records.given_on(self._state / handle.name, handle):
            return
        with _engine() as client:
            if record is None and handle.boot_id:
                _remove(client, handle.boot_id)
            self._clear(client, self._state / handle.name)

    def running(self) -> list[Handle]:
        """Return what has a folder or a container here, also what died or never came up."""
        handles = records.found(self._state, self.name)
        known = {handle.boot_id for handle in handles}
        with _engine() as client:
            label = f"{LABEL}={self._state}"
            containers = client.api.containers(all=True, filters={"label": [label]})
        for found in containers:
            labels = found["Labels"]
            if labels["tandem.boot"] not in known:
                handles.append(
                    Handle(
                        provider=self.name,
                        name=labels["tandem.sandbox"],
                        boot_id=labels["tandem.boot"],
                    )
                )
        return handles

    def log(self, handle: Handle) -> str:
        """Return the end of what the sandbox's session printed."""
        with _engine() as client:
            return _log_tail(client, handle.boot_id)

    def _start(
        self, client: docker.DockerClient, spec: SandboxSpec, target: Path, uid: int
    ) -> Handle:
        boot_id = uuid.uuid4().hex
        password = folder.fill(target, owner=uid, uid=uid)
        handle = Handle(
            provider=self.name,
            name=spec.name,
            boot_id=boot_id,
            guest_socket=str(target / "run" / "guest.sock"),
            rfb_socket=str(target / "run" / "rfb.sock"),
            rfb_password=password,
        )
        # Before there is a container: whoever finds the folder of an interrupted start can clear it.
        records.save(target, records.Record(handle, ()))
        shape = Shape(spec, target, boot_id, uid, image.tag(), _LIMITS)
        try:
            container = client.containers.create(**shape.container())
            container.start()
        except APIError as error:
            raise ProvisionFailed(f"{spec.name}: the engine refused it: {error}") from error
        folder.wait_until_ready(
            target,
            lambda: _ended(client, boot_id),
            lambda: _log_tail(client, boot_id),
            seconds=_START_TIMEOUT_S,
        )
        # The init of a pid namespace: killing it kills every process inside.
        handle = replace(handle, pid=int(_state(client, boot_id)["Pid"]))
        records.save(target, records.Record(handle, ()))
        self.connect(handle).close()
        return handle

    def _clear(self, client: docker.DockerClient, target: Path) -> None:
        record = records.load(target)
        if record is not None:
            _remove(client, record.handle.boot_id)
        records.remove(target)

    def _cause(self, handle: Handle) -> str:
        try:
            with _engine() as client:
                return _ending(client, handle.boot_id)
        except SandboxError as error:
            return str(error)


@contextmanager
def _engine() -> Iterator[docker.DockerClient]:
    """Give a client for one piece of work; what the engine fails at is a SandboxError."""
    client = engine.connect()
    try:
        yield client
    except (DockerException, requests.RequestException) as error:
        raise SandboxError(f"the container engine: {error}") from error
    finally:
        client.close()


def _check_host() -> None:
    if os.geteuid() != 0:
        raise ProvisionFailed(
            "provider container needs root: it gives every sandbox a user of its own"
        )


def _ended(client: docker.DockerClient, boot_id: str) -> str:
    """Say why a container has ended; "" while it runs or is still being made."""
    stopped = _state(client, boot_id)["Status"] in ("exited", "stopped", "dead")
    return _ending(client, boot_id) if stopped else ""


def _state(client: docker.DockerClient, boot_id: str) -> dict[str, Any]:
    state: dict[str, Any] = client.api.inspect_container(container_name(boot_id))["State"]
    return state


def _ending(client: docker.DockerClient, boot_id: str) -> str:
    """Say in words what became of a container."""
    try:
        state = _state(client, boot_id)
    except NotFound:
        return "its container is gone"
    if state["Status"] == "running":
        return "its container runs, but as another process"
    words = f"its container ended with status {state['ExitCode']}"
    return f"{words}: out of memory" if state.get("OOMKilled") else words


def _remove(client: docker.DockerClient, boot_id: str) -> None:
    """Kill and remove a container; fine if there is none, or another caller removes it too."""
    name = container_name(boot_id)
    try:
        # Its first process heeds no request to end; without this the engine would wait for it.
        with suppress(APIError):
            client.api.kill(name)
        client.api.remove_container(name, force=True, v=True)
    except NotFound:
        return


def _log_tail(client: docker.DockerClient, boot_id: str) -> str:
    try:
        text = client.api.logs(container_name(boot_id), tail=50).decode(errors="replace")
    except NotFound:
        return "no log"
    return str(text[-_LOG_TAIL:]).strip() or "the log is empty"
