"""Pods by the official client, against a simulated API server: claims, causes, what a pod may do."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from sandbox.provider import DesktopLost, ProvisionFailed, SandboxError, SandboxSpec
from sandbox.providers.kubernetes import cluster as settings
from sandbox.providers.kubernetes.pods import SANDBOX, STATE, Pods
from sandbox.providers.kubernetes.provider import KubernetesProvider
from tests.sandbox.cluster import Cluster, cluster
from tests.sandbox.desktops import needs_local

ROOT = Path(__file__).resolve().parents[2]
WARM = SandboxSpec("warm")


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path, warm=1) as made:
        made.bare = True
        yield made


@pytest.fixture
def pods(api: Cluster, tmp_path: Path) -> Iterator[Pods]:
    pods = Pods(settings.load(tmp_path / "kubernetes" / settings.FILE))
    yield pods
    pods.close()


def test_one_warm_pod_goes_to_one_of_many(api: Cluster, pods: Pods) -> None:
    pods.top_up(WARM)
    [warm] = pods.list(STATE, "warm")
    claimed: list[object] = []
    together = threading.Barrier(4)

    def claim(name: str) -> None:
        together.wait()
        claimed.append(pods.claim(WARM, sandbox=name))

    threads = [threading.Thread(target=claim, args=(f"desk-{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(pod is not None for pod in claimed) == [False, False, False, True]
    [leased] = pods.list(STATE, "leased")
    assert leased.metadata.uid == warm.metadata.uid
    assert pods.claim(SandboxSpec("x", width=800, height=600), sandbox="x") is None


def test_topping_up_replaces_what_failed_and_makes_no_more(api: Cluster, pods: Pods) -> None:
    pods.top_up(WARM)
    pods.top_up(WARM)
    [first] = pods.list(STATE, "warm")
    api.fail(first.metadata.name, reason="Evicted", exit_code=137)
    pods.top_up(WARM)
    [second] = pods.list(STATE, "warm")
    assert second.metadata.uid != first.metadata.uid
    assert set(api.objects["secrets"]) == {second.metadata.name}


def test_a_warm_pod_that_would_soon_end_is_replaced(api: Cluster, pods: Pods) -> None:
    """A pod has twelve hours from its start, not from when somebody gets it."""
    pods.top_up(WARM)
    [old] = pods.list(STATE, "warm")
    since = datetime.now(UTC) - timedelta(hours=7)
    api.objects["pods"][old.metadata.name]["metadata"]["creationTimestamp"] = since.isoformat()
    assert pods.claim(WARM, sandbox="desk") is None
    pods.top_up(WARM)
    [new] = pods.list(STATE, "warm")
    assert new.metadata.uid != old.metadata.uid
    assert pods.claim(WARM, sandbox="desk") is not None


def test_a_secret_without_a_pod_is_swept_away(api: Cluster, pods: Pods) -> None:
    labels = {"tandem/host": "host-1"}
    for name, made in (("old", "2020-01-01T00:00:00Z"), ("new", None)):
        secret = api.create("secrets", {"metadata": {"name": name, "labels": labels}, "data": {}})
        secret["metadata"]["creationTimestamp"] = made or secret["metadata"]["creationTimestamp"]
    pods.top_up(WARM)
    assert "old" not in api.objects["secrets"]
    assert "new" in api.objects["secrets"]  # its pod may be on its way


def test_a_name_that_is_another_pods_by_now_is_left_alone(api: Cluster, pods: Pods) -> None:
    made = pods.create(WARM, sandbox="a")
    pods.delete(made.metadata.name, uid="another")
    assert pods.read(made.metadata.name) is not None
    pods.delete(made.metadata.name, uid=made.metadata.uid)
    pods.delete(made.metadata.name)
    assert api.objects == {"pods": {}, "secrets": {}}


def test_a_pod_that_can_never_start_says_why_and_leaves_nothing(
    api: Cluster, tmp_path: Path
) -> None:
    api.stuck = "ErrImageNeverPull"
    provider = KubernetesProvider(tmp_path / "kubernetes")
    with pytest.raises(
        ProvisionFailed, match="desktop waits: ErrImageNeverPull it is not there: the end"
    ):
        provider.start(SandboxSpec("desk"))
    assert provider.running() == []
    assert [p for p in api.objects["pods"].values() if SANDBOX in p["metadata"]["labels"]] == []
    assert set(api.objects["secrets"]) == set(api.objects["pods"])


def test_who_may_not_is_told_so(api: Cluster, tmp_path: Path) -> None:
    api.token = "changed"
    with pytest.raises(SandboxError, match="can't list pods: 401"):
        KubernetesProvider(tmp_path / "kubernetes").running()


def _no_room(*_: object) -> None:
    raise ConnectionAbortedError("exceeded quota")


@needs_local
def test_a_pod_from_warm_to_gone(
    api: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One story, because every chapter needs a desktop that runs."""
    api.bare = False
    provider = KubernetesProvider(tmp_path / "kubernetes")
    pods = Pods(settings.load(tmp_path / "kubernetes" / settings.FILE))
    pods.top_up(WARM)
    [warm] = pods.list(STATE, "warm")
    api.bare = True
    with monkeypatch.context() as full:
        full.setattr(api, "create", _no_room)
        handle = provider.start(SandboxSpec("desk"))
    assert handle.boot_id == warm.metadata.uid
    assert pods.list(STATE, "warm") == []
    pods.top_up(WARM)
    assert len(pods.list(STATE, "warm")) == 1
    with pytest.raises(ProvisionFailed, match="can't be a label"):
        provider.start(SandboxSpec("a b"))

    api.fail(warm.metadata.name, reason="OOMKilled", exit_code=137)
    with pytest.raises(DesktopLost, match="desktop ended with status 137: OOMKilled"):
        provider.connect(handle)

    # Without its folder it is found by its labels, and ended.
    shutil.rmtree(Path(handle.guest_socket).parent.parent)
    [orphan] = provider.running()
    assert (orphan.name, orphan.boot_id) == ("desk", handle.boot_id)
    provider.stop(orphan)
    assert provider.running() == []
    assert pods.read(warm.metadata.name) is None
    pods.close()


def _manifest(path: Path, template: str | None = None) -> dict[str, object]:
    text = 'namespace = "a"\nimage = "registry.example/pod:1"\n'
    if template is not None:
        (path / "pod.yaml").write_text(template)
        text += 'template = "pod.yaml"\n'
    (path / settings.FILE).write_text(text)
    cluster = settings.load(path / settings.FILE)
    return cluster.pod("tandem-1", SandboxSpec("x", cpus=1.5, memory_mb=900), {"a": "b"})


def test_what_a_pod_may_do(tmp_path: Path) -> None:
    pod = yaml.safe_load(yaml.safe_dump(_manifest(tmp_path)))
    spec = pod["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in [*spec["initContainers"], *spec["containers"]]:
        assert container["image"] == "registry.example/pod:1"
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert set(container["resources"]["limits"]) == {"cpu", "memory"}
    [desktop] = [c for c in spec["containers"] if c["name"] == "desktop"]
    assert desktop["resources"]["limits"] == {"cpu": "1.5", "memory": "900Mi"}
    # What opens the door is not where an agent's programs run.
    assert "door" not in [mount["name"] for mount in desktop["volumeMounts"]]


def test_a_template_cannot_hand_out_a_token_or_lose_its_door(tmp_path: Path) -> None:
    whole = settings._TEMPLATE.read_text()
    opened = whole.replace(
        "automountServiceAccountToken: false", "automountServiceAccountToken: true"
    )
    assert _manifest(tmp_path, opened)["spec"]["automountServiceAccountToken"] is False
    for wrong in (
        whole.replace("- name: door\n      image", "- name: hole\n      image"),
        "a: b",
        "[",
    ):
        with pytest.raises(ProvisionFailed, match="template"):
            _manifest(tmp_path, wrong)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('image = "a"', "'namespace' is missing"),
        ('namespace = "A b"\nimage = "a"', "can't be a namespace"),
        ('namespace = "a"\nimage = "a; b"', "can't be an image"),
        ('namespace = "a"\nimage = "a"\nwarn = 1', "unknown key 'warn'"),
        ('namespace = "a"\nimage = "a"\nhost = "-"', "can't be a label"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / settings.FILE).write_text(text)
    with pytest.raises(ProvisionFailed, match=says):
        settings.load(tmp_path / settings.FILE)


def test_the_manifests_let_nothing_out_and_only_the_host_in() -> None:
    documents = list(yaml.safe_load_all((ROOT / "deploy/kubernetes/sandboxes.yaml").read_text()))
    policies = {d["metadata"]["name"]: d["spec"] for d in documents if d["kind"] == "NetworkPolicy"}
    assert policies["deny-all"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    [way_in] = policies["host-to-door"]["ingress"]
    assert way_in["ports"] == [{"protocol": "TCP", "port": settings.DOOR_PORT}]
    [caller] = way_in["from"]
    assert set(caller) == {"namespaceSelector", "podSelector"}  # both, of one peer
    [role] = [d for d in documents if d["kind"] == "Role"]
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {
        *("create", "get", "list", "patch", "delete"),
    }
