"""Which cluster, and what its pods are made from: a TOML file, and the template of a pod.

namespace = "tandem-sandboxes"
image = "registry.example/tandem-pod:1"     # python -m sandbox.images build pod, then push it
host = "host-1"                             # whose pods these are; default: this machine's name
warm = 2                                    # pods that wait, of the size below
size = [1280, 720]
kubeconfig = "config"                       # beside this file; without it: the pod we run in
template = "pod.yaml"                       # beside this file; without it: the one beside this module
ready_within_s = 120
"""

from __future__ import annotations

import re
import socket
import tomllib
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import yaml
from kubernetes import client, config
from kubernetes.config.config_exception import ConfigException

from sandbox.provider import ProvisionFailed, SandboxSpec

FILE = "cluster.toml"
DOOR_PORT = 7443
_TEMPLATE = Path(__file__).with_name("pod.yaml")
_KEYS = {
    *("namespace", "image", "host", "warm", "size", "kubeconfig", "template", "ready_within_s"),
}
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./:@-]{0,254}")


@dataclass(frozen=True, slots=True)
class Cluster:
    """What cluster.toml says; an empty `kubeconfig` means the service account of our own pod."""

    namespace: str
    image: str
    host: str
    warm: int
    size: tuple[int, int]
    kubeconfig: str
    template: str
    ready_within_s: float

    def api(self) -> client.CoreV1Api:
        """Return a client; raises ProvisionFailed if there is nothing to sign in with."""
        settings = client.Configuration()
        signing_in: Any = config  # the package's types stop here
        try:
            if self.kubeconfig:
                signing_in.load_kube_config(self.kubeconfig, client_configuration=settings)
            else:
                signing_in.load_incluster_config(client_configuration=settings)
        except (ConfigException, OSError) as error:
            raise ProvisionFailed(
                f"no way into the cluster: {error}; name a kubeconfig in {FILE}"
            ) from error
        settings.retries = 0
        return client.CoreV1Api(client.ApiClient(settings))

    def pod(self, name: str, spec: SandboxSpec, labels: dict[str, str]) -> dict[str, Any]:
        """Return the manifest of a pod; raises ProvisionFailed naming what the template lacks."""
        filled = Template(self.template).safe_substitute(
            POD=name,
            IMAGE=self.image,
            SIZE=f"{spec.width}x{spec.height}",
            CPUS=f"{spec.cpus:g}",
            MEMORY=f"{spec.memory_mb}Mi",
        )
        try:
            pod: dict[str, Any] = yaml.safe_load(filled)
            containers = {c["name"] for c in pod["spec"]["containers"]}
            volumes = {v["name"]: v for v in pod["spec"]["volumes"]}
            secret = volumes["door"]["secret"]["secretName"]
        except (yaml.YAMLError, KeyError, TypeError) as error:
            raise ProvisionFailed(f"the pod's template is wrong: {error!r}") from error
        if not {"desktop", "door"} <= containers or secret != name:
            raise ProvisionFailed(
                'the pod\'s template needs containers "desktop" and "door" and '
                'a volume "door" of the secret $POD'
            )
        pod["metadata"].setdefault("labels", {}).update(labels)
        # Whatever a template says: nothing inside may speak to the cluster.
        pod["spec"]["automountServiceAccountToken"] = False
        return pod


def load(path: Path) -> Cluster:
    """Read cluster.toml; raises ProvisionFailed naming the key."""
    try:
        table = tomllib.loads(path.read_text())
        return _cluster(table, path.parent)
    except FileNotFoundError as error:
        raise ProvisionFailed(f"{error.filename} is missing: see docs/providers.md") from None
    except KeyError as error:
        raise ProvisionFailed(f"{path}: {error} is missing") from error
    except (OSError, TypeError, ValueError) as error:
        raise ProvisionFailed(f"{path}: {error}") from error


def label(value: str) -> str:
    """Return `value` if it can be a label's; raises ValueError."""
    if not _LABEL.fullmatch(value):
        raise ValueError(f"{value!r} can't be a label of Kubernetes: letters, digits, - _ .")
    return value


def _cluster(table: dict[str, Any], beside: Path) -> Cluster:
    if unknown := set(table) - _KEYS:
        raise ValueError(
            f"unknown key {sorted(unknown)[0]!r}; there are {', '.join(sorted(_KEYS))}"
        )
    if not _NAMESPACE.fullmatch(str(table["namespace"])):
        raise ValueError(f"{table['namespace']!r} can't be a namespace")
    if not _IMAGE.fullmatch(str(table["image"])):
        raise ValueError(f"{table['image']!r} can't be an image")
    width, height = (int(pixels) for pixels in table.get("size", (1280, 720)))
    template = beside / table["template"] if "template" in table else _TEMPLATE
    return Cluster(
        namespace=table["namespace"],
        image=table["image"],
        host=label(str(table.get("host", socket.gethostname()))),
        warm=int(table.get("warm", 0)),
        size=(width, height),
        kubeconfig=str(beside / table["kubeconfig"]) if "kubeconfig" in table else "",
        template=template.read_text(),
        ready_within_s=float(table.get("ready_within_s", 120)),
    )
