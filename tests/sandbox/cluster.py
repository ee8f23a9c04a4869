"""A simulated Kubernetes API server, with a kubelet whose pods are local desktops behind doors.

No real cluster: it knows the calls that the provider makes, answers them in the server's words
(versions, conflicts, preconditions, reasons), and refuses a caller without the right token.
"""

from __future__ import annotations

import base64
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from sandbox.providers.kubernetes.identity import Identity
from tests.sandbox import far

NAMESPACE = "tandem-test"
IMAGE = "localhost/tandem-pod:test"
Object = dict[str, Any]


class Cluster:
    """The objects of one namespace, and the desktops behind its pods."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.token = secrets.token_hex(16)
        self.objects: dict[str, dict[str, Object]] = {"pods": {}, "secrets": {}}
        self.lock = threading.Lock()
        self.stuck = ""
        """A reason such as "ErrImageNeverPull": pods that are made from now on wait for ever."""
        self.bare = False
        """Whether pods say that they are ready and have nothing inside."""
        self._version = 0
        self._desktops: dict[str, ExitStack] = {}

    def create(self, kind: str, made: Object) -> Object:
        name = made["metadata"]["name"]
        made["metadata"]["creationTimestamp"] = _now()
        made["metadata"]["uid"] = secrets.token_hex(16)
        if kind == "pods":
            made["status"] = {"phase": "Pending", "conditions": []}
            if not self.stuck:
                self._run(name, made)
            else:
                waiting = {"reason": self.stuck, "message": "it is not there"}
                made["status"]["containerStatuses"] = [_status("desktop", {"waiting": waiting})]
        with self.lock:
            self._touch(made)
            self.objects[kind][name] = made
        return made

    def patch(self, kind: str, name: str, change: Object) -> Object | None:
        """Merge metadata; None for a version that is not the newest any more."""
        with self.lock:
            known = self.objects[kind][name]["metadata"]
            change = dict(change["metadata"])
            if change.pop("resourceVersion", known["resourceVersion"]) != known["resourceVersion"]:
                return None
            known.setdefault("labels", {}).update(change.pop("labels", {}))
            known.update(change)
            self._touch(self.objects[kind][name])
            return self.objects[kind][name]

    def delete(self, kind: str, name: str, uid: str) -> Object | None:
        """Remove an object; None if it is not the one of `uid`."""
        with self.lock:
            found = self.objects[kind][name]
            if uid and found["metadata"]["uid"] != uid:
                return None
            del self.objects[kind][name]
        if kind == "pods":
            self.kill(name)
        return found

    def select(self, kind: str, selector: str) -> list[Object]:
        wanted = dict(pair.split("=") for pair in selector.split(",") if pair)
        with self.lock:
            return [
                thing
                for thing in self.objects[kind].values()
                if wanted.items() <= thing["metadata"].get("labels", {}).items()
            ]

    def kill(self, name: str) -> None:
        """End what runs in a pod, as a node that goes does."""
        if (desktop := self._desktops.pop(name, None)) is not None:
            desktop.close()

    def fail(self, name: str, *, reason: str, exit_code: int) -> None:
        """End a pod for `reason`, as the kubelet does for a lack of memory."""
        self.kill(name)
        with self.lock:
            ended = {"terminated": {"reason": reason, "exitCode": exit_code}}
            pod = self.objects["pods"][name]
            pod["status"] = {"phase": "Failed", "containerStatuses": [_status("desktop", ended)]}
            self._touch(pod)

    def _run(self, name: str, pod: Object) -> None:
        """Be the kubelet: mount the secret, start the desktop, open its door, say ready."""
        ready = [{"type": "Ready", "status": "True"}]
        if self.bare:
            pod["status"] = {"phase": "Running", "podIP": "127.0.0.1", "conditions": ready}
            return
        [desktop] = [c for c in pod["spec"]["containers"] if c["name"] == "desktop"]
        width, height = desktop["command"][desktop["command"].index("--geometry") + 1].split("x")
        files = {
            file: base64.b64decode(data)
            for file, data in self.objects["secrets"][name]["data"].items()
        }
        text = {file: data.decode("latin-1") for file, data in files.items()}
        keys = Identity(text["certificate"], text["door.pem"], text["secret"], text["password"])
        ip = "127." + ".".join(str(secrets.randbelow(250) + 2) for _ in range(3))
        stack = self._desktops[name] = ExitStack()
        stack.callback(far.stop, self.root, name)
        size = (int(width), int(height))
        boot_id = far.restart(self.root, name, size, files["rfb.passwd"])
        stack.enter_context(far.door(self.root, name, f"{ip}:7443", keys))
        pod["metadata"]["uid"] = (
            boot_id  # the guest is told its pod's uid; here the other way round
        )
        pod["status"] = {"phase": "Running", "podIP": ip, "conditions": ready}

    def _touch(self, thing: Object) -> None:
        self._version += 1
        thing["metadata"]["resourceVersion"] = str(self._version)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster: Cluster

    def do_GET(self) -> None:
        kind, name, rest, query = self._path()
        if rest == "log":
            return self._send(200, "the end of the log")
        if name:
            with self.cluster.lock:
                found = self.cluster.objects[kind].get(name)
            return self._found(found)
        items = self.cluster.select(kind, query.get("labelSelector", [""])[0])
        self._send(200, {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items})

    def do_POST(self) -> None:
        kind, *_ = self._path()
        self._send(201, self.cluster.create(kind, self._body()))

    def do_PATCH(self) -> None:
        kind, name, *_ = self._path()
        if name not in self.cluster.objects[kind]:
            return self._found(None)
        changed = self.cluster.patch(kind, name, self._body())
        self._send(200, changed) if changed else self._refuse(409, "Conflict", "it has changed")

    def do_DELETE(self) -> None:
        kind, name, *_ = self._path()
        uid = ((self._body() or {}).get("preconditions") or {}).get("uid", "")
        if name not in self.cluster.objects[kind]:
            return self._found(None)
        gone = self.cluster.delete(kind, name, uid)
        self._send(200, gone) if gone else self._refuse(409, "Conflict", "another uid")

    def _path(self) -> tuple[str, str, str, dict[str, list[str]]]:
        url = urlsplit(self.path)
        parts = url.path.removeprefix(f"/api/v1/namespaces/{NAMESPACE}/").split("/")
        kind, name, rest = [*parts, "", ""][:3]
        return kind, name, rest, parse_qs(url.query)

    def _body(self) -> Object:
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")

    def _found(self, thing: Object | None) -> None:
        self._send(200, thing) if thing else self._refuse(404, "NotFound", "not found")

    def _refuse(self, status: int, reason: str, message: str) -> None:
        self._send(status, {"kind": "Status", "code": status, "reason": reason, "message": message})

    def _send(self, status: int, answer: Object | str) -> None:
        if self.headers.get("Authorization") != f"Bearer {self.cluster.token}":
            status, answer = 401, {"kind": "Status", "reason": "Unauthorized"}
        with self.cluster.lock:
            data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        self.send_response(status)
        kind = "text/plain" if isinstance(answer, str) else "application/json"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of requests."""


@contextmanager
def cluster(root: Path, *, warm: int = 0) -> Iterator[Cluster]:
    """Serve a cluster, and write what the kubernetes provider of `root`/kubernetes needs of it."""
    made = Cluster(root)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"cluster": made}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    state = root / "kubernetes"
    state.mkdir()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    (state / "config").write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "test",
                "clusters": [{"name": "test", "cluster": {"server": url}}],
                "users": [{"name": "test", "user": {"token": made.token}}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            }
        )
    )
    (state / "cluster.toml").write_text(
        f'namespace = "{NAMESPACE}"\nimage = "{IMAGE}"\nhost = "host-1"\nkubeconfig = "config"\n'
        f"warm = {warm}\nready_within_s = 30\n"
    )
    try:
        yield made
    finally:
        for name in list(made.objects["pods"]):
            made.kill(name)
        server.shutdown()
        server.server_close()


def _status(name: str, state: Object) -> Object:
    return {
        **{"name": name, "image": IMAGE, "imageID": "", "ready": False, "restartCount": 0},
        "state": state,
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
