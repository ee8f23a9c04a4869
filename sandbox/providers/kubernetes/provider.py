"""The kubernetes provider: one pod per sandbox, taken from a few warm ones where there are any.

The guest is reached by the pod's IP, through the door beside it: TLS with a certificate and a secret
that only this pod and its host know. So the host has to run inside the cluster's network. Tested
against a simulated API server only, whose pods are local desktops: no real cluster was at hand.
"""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from sandbox.desktop import GuestDesktop
from sandbox.provider import (
    Desktop,
    DesktopLost,
    Handle,
    ProvisionFailed,
    SandboxError,
    SandboxSpec,
)
from sandbox.providers import records, tunnel
from sandbox.providers.kubernetes import cluster
from sandbox.providers.kubernetes.pods import SANDBOX, STATE, Pod, Pods, state

_log = logging.getLogger("sandbox.kubernetes")


class KubernetesProvider:
    """Starts, finds and stops the pods of one host; several of its processes may use it at once."""

    name = "kubernetes"

    def __init__(self, state: Path) -> None:
        self._state = state.absolute()
        self._sandboxes = self._state / "sandboxes"

    def start(self, spec: SandboxSpec) -> Handle:
        """Claim a warm pod or make one, and return when its guest answers; raises ProvisionFailed."""
        folder = self._sandboxes / spec.name
        records.check(spec, provider=self.name, socket=folder / "run" / "guest.sock")
        try:
            cluster.label(spec.name)
        except ValueError as error:
            raise ProvisionFailed(str(error)) from error
        with self._pods() as pods:
            try:
                folder.mkdir(parents=True, mode=0o700)
            except FileExistsError:
                raise ProvisionFailed(
                    f"a sandbox {spec.name} exists already: stop it first"
                ) from None
            try:
                return self._start(pods, spec, folder)
            except BaseException as error:
                self._clear(pods, folder)
                if isinstance(error, SandboxError) and not isinstance(error, ProvisionFailed):
                    raise ProvisionFailed(f"{spec.name}: {error}") from error
                raise

    def connect(self, handle: Handle) -> Desktop:
        """Return the desktop behind `handle`; raises DesktopLost with what became of its pod."""
        if not self.alive(handle):
            raise DesktopLost(f"{handle.name} is not connected any more: {self._cause(handle)}")
        try:
            return GuestDesktop(handle)
        except DesktopLost as error:
            raise DesktopLost(f"{error}; {self._cause(handle)}") from error

    def alive(self, handle: Handle) -> bool:
        """Whether the way to the pod is still open; says nothing of the pod."""
        return records.runs(handle.pid, handle.boot_id)

    def stop(self, handle: Handle) -> None:
        """Delete the sandbox's pod and secret, and what is here of it."""
        folder = self._sandboxes / handle.name
        record = records.load(folder)
        if records.given_on(folder, handle):
            return
        with self._pods() as pods:
            if record is None and handle.boot_id:
                for pod in pods.list(SANDBOX, handle.name):
                    if pod.metadata.uid == handle.boot_id:
                        pods.delete(pod.metadata.name, uid=pod.metadata.uid)
            self._clear(pods, folder)

    def running(self) -> list[Handle]:
        """Return what has a folder here or a pod of this host in the cluster; warm pods are not it."""
        handles = records.found(self._sandboxes, self.name)
        known = {handle.boot_id for handle in handles}
        with self._pods() as pods:
            for pod in pods.list(STATE, "leased"):
                if pod.metadata.uid not in known:
                    name = pod.metadata.labels.get(SANDBOX, "")
                    handles.append(Handle(provider=self.name, name=name, boot_id=pod.metadata.uid))
        return handles

    # -- one start -------------------------------------------------------------------------

    def _start(self, pods: Pods, spec: SandboxSpec, folder: Path) -> Handle:
        pod = pods.claim(spec, sandbox=spec.name) or pods.create(spec, sandbox=spec.name)
        handle = Handle(
            provider=self.name,
            name=spec.name,
            boot_id=pod.metadata.uid,
            guest_socket=str(folder / "run" / "guest.sock"),
            rfb_socket=str(folder / "run" / "rfb.sock"),
        )
        # The pod's name first: whoever finds the folder of an interrupted start can clear it.
        (folder / "pod").write_text(pod.metadata.name)
        records.save(folder, records.Record(handle, ()))
        try:
            self._top_up(pods)
        except SandboxError as error:  # a full cluster: this one's pod is there all the same
            _log.warning("%s: no warm pods for the next ones: %s", spec.name, error)
        pod = pods.wait(pod.metadata.name)
        way, password = pods.way(pod)
        pid = tunnel.open_way(folder, way, boot_id=handle.boot_id)
        handle = replace(handle, pid=pid, rfb_password=password)
        records.save(folder, records.Record(handle, ()))
        GuestDesktop(handle).close()
        return handle

    def _top_up(self, pods: Pods) -> None:
        settings = self._cluster()
        width, height = settings.size
        with (self._state / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            pods.top_up(SandboxSpec("warm", width=width, height=height))

    def _clear(self, pods: Pods, folder: Path) -> None:
        record = records.load(folder)
        if record is not None:
            tunnel.close_way(record.handle.pid, record.handle.boot_id)
            pods.delete(_pod_of(folder), uid=record.handle.boot_id)
        records.remove(folder)

    def _cause(self, handle: Handle) -> str:
        """Say what became of a sandbox's pod, or of the way to it."""
        folder = self._sandboxes / handle.name
        try:
            with self._pods() as pods:
                pod: Pod | None = pods.read(_pod_of(folder))
        except SandboxError as error:
            return str(error)
        if pod is None or pod.metadata.uid != handle.boot_id:
            return "its pod is gone"
        return f"its pod: {state(pod)}; its tunnel says: {tunnel.log_tail(folder)}"

    def _cluster(self) -> cluster.Cluster:
        return cluster.load(self._state / cluster.FILE)

    @contextmanager
    def _pods(self) -> Iterator[Pods]:
        with closing(Pods(self._cluster())) as pods:
            yield pods


def _pod_of(folder: Path) -> str:
    try:
        return (folder / "pod").read_text()
    except FileNotFoundError:
        return "none"
