"""The fleet's pages: what an admin sees and turns, and that nobody else does."""

from __future__ import annotations

import io
import threading
import zlib
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from PIL import Image

from sandbox import pool
from sandbox.models import AuditEvent, Host, Lease, LeaseRequest, Pool, Sandbox
from sandbox.operations import fleet
from sandbox.provider import SandboxSpec
from sandbox.screen import thumbnails

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(User.objects.create_user("ada", is_staff=True))
    return client


@pytest.fixture
def desks() -> Pool:
    return Pool.objects.create(name="desks", provider="fake")


@pytest.fixture
def host(settings) -> Host:  # type: ignore[no-untyped-def]
    return Host.objects.create(
        name=settings.SANDBOX_HOST, slots=8, providers=["fake"], last_seen=timezone.now()
    )


def computer(desks: Pool, host: Host, name: str, state: str = "ready", **more: object) -> Sandbox:
    return Sandbox.objects.create(
        name=name, pool=desks, provider="fake", host=host.name, state=state, **more
    )  # fmt: skip


def held(sandbox: Sandbox, owner: User | None = None) -> Lease:
    Sandbox.objects.filter(pk=sandbox.pk).update(state="leased", epoch=1)
    until = timezone.now() + timedelta(minutes=5)
    return Lease.objects.create(
        sandbox=sandbox, epoch=1, owner=owner, idempotency_key=f"k-{sandbox.pk}", expires_at=until,
        hard_expires_at=until,
    )  # fmt: skip


def test_the_overview_counts_what_there_is(admin: Client, desks: Pool, host: Host) -> None:
    computer(desks, host, "one")
    computer(desks, host, "two", "provisioning")
    held(computer(desks, host, "three"))
    page = admin.get("/fleet/").content.decode()
    assert "desks" in page and host.name in page
    for said in ("1 ready", "1 leased", "1 provisioning", "3 of 8"):
        assert said in page


@pytest.mark.parametrize(
    "path",
    [
        "",
        "computers/",
        "computers/?as=table",
        "computers/?pool=%C2%B2",
        "leases/",
        "leases/?all=1",
        "failures/",
    ],
)
def test_pages_say_something_when_there_is_nothing(admin: Client, path: str) -> None:
    answer = admin.get(f"/fleet/{path}")
    assert answer.status_code == 200
    assert 'class="card empty"' in answer.content.decode()


@pytest.mark.parametrize("path", ["", "computers/", "leases/", "failures/"])
def test_only_admins_look(client: Client, path: str) -> None:
    assert client.get(f"/fleet/{path}").status_code == 302
    client.force_login(User.objects.create_user("ann"))
    assert client.get(f"/fleet/{path}").status_code == 403


def test_only_admins_turn(client: Client, desks: Pool, host: Host) -> None:
    client.force_login(User.objects.create_user("ann"))
    one = computer(desks, host, "one")
    for path in (
        f"computers/{one.pk}/end/",
        f"computers/{one.pk}/reset/",
        f"hosts/{host.pk}/drain/",
        f"pools/{desks.pk}/pause/",
    ):
        assert client.post(f"/fleet/{path}").status_code == 403
    one.refresh_from_db()
    assert one.state == "ready"


def test_a_lease_can_be_taken_back(admin: Client, desks: Pool, host: Host) -> None:
    lease = held(computer(desks, host, "one"))
    admin.post(f"/fleet/leases/{lease.pk}/end/")
    lease.refresh_from_db()
    assert lease.state == Lease.State.RELEASED and "ada" in lease.release_reason
    assert lease.ending == Lease.Ending.ADMIN


def test_ending_a_computer_tells_its_holder_why(admin: Client, desks: Pool, host: Host) -> None:
    lease = held(one := computer(desks, host, "one"))
    admin.post(f"/fleet/computers/{one.pk}/end/", {"next": "https://evil.example/"})
    lease.refresh_from_db()
    assert lease.state == Lease.State.LOST and "killed by ada" in lease.release_reason


def test_a_host_drains_and_a_pool_pauses_and_both_go_on(
    admin: Client, desks: Pool, host: Host
) -> None:
    admin.post(f"/fleet/hosts/{host.pk}/drain/")
    admin.post(f"/fleet/pools/{desks.pk}/pause/")
    host.refresh_from_db()
    desks.refresh_from_db()
    assert host.state == Host.State.DRAINING and desks.paused
    Pool.objects.update(failures=3, degraded_at=timezone.now(), degraded_cause="no image")
    admin.post(f"/fleet/hosts/{host.pk}/undrain/")
    admin.post(f"/fleet/pools/{desks.pk}/resume/")
    host.refresh_from_db()
    desks.refresh_from_db()
    assert host.state == Host.State.UP
    assert (desks.paused, desks.failures, desks.degraded_at) == (False, 0, None)
    kinds = set(AuditEvent.objects.values_list("kind", flat=True))
    assert {"pool.paused", "pool.resumed"} <= kinds


def test_a_page_of_a_computer_escapes_what_a_guest_may_have_said(
    admin: Client, desks: Pool, host: Host
) -> None:
    one = computer(desks, host, "one", "failed", cause="<script>alert(1)</script>")
    page = admin.get(f"/fleet/computers/{one.pk}/").content.decode()
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page


def test_a_thumbnail_is_a_small_jpeg_and_changes_no_epoch(
    admin: Client, desks: Pool, host: Host
) -> None:
    provider = pool.provider("fake")
    handle = provider.start(SandboxSpec("shown", width=640, height=400))
    try:
        one = computer(desks, host, "shown", handle=Sandbox.handle_record(handle))
        answer = admin.get(f"/fleet/computers/{one.pk}/thumbnail.jpg")
        with Image.open(io.BytesIO(answer.content)) as picture:
            assert (picture.format, picture.width) == ("JPEG", 320)
        assert provider.connect(handle).health()["epoch"] == 0
    finally:
        provider.stop(handle)


def test_no_thumbnail_says_why(admin: Client, desks: Pool, host: Host) -> None:
    one = computer(desks, host, "one", "resetting")
    answer = admin.get(f"/fleet/computers/{one.pk}/thumbnail.jpg")
    assert answer.status_code == 404 and answer.content == b"one is resetting"
    lost = computer(desks, host, "two", handle={"provider": "fake", "name": "two", "boot_id": "x"})
    assert admin.get(f"/fleet/computers/{lost.pk}/thumbnail.jpg").status_code == 404


def test_a_picture_that_a_guest_has_spoilt_is_refused_in_words() -> None:
    out = io.BytesIO()
    Image.effect_noise((64, 48), 50).save(out, "PNG")
    data = out.getvalue().index(b"IDAT")
    nameless = out.getvalue()[: data + 100] + bytes(4) + b"\xff" * 40
    nameless = nameless[: data - 4] + (92).to_bytes(4, "big") + nameless[data:]
    wide = out.getvalue()[:16] + (8000).to_bytes(4, "big") * 2 + out.getvalue()[24:]
    wide = wide[:29] + zlib.crc32(wide[12:29]).to_bytes(4, "big") + wide[33:]
    for spoilt, why in (
        (nameless, "can't be read: broken PNG"),
        (wide, "8000x8000"),
        (b"", "read"),
    ):
        with pytest.raises(thumbnails.NoPicture, match=why):
            thumbnails._small(spoilt)


def test_computers_that_hang_take_no_more_threads_than_may_look(
    admin: Client, desks: Pool, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thumbnails, "WAIT_S", 0.01)
    monkeypatch.setattr(thumbnails, "_looking", threading.BoundedSemaphore(1))
    one = computer(desks, host, "one", handle={"provider": "fake", "name": "one", "boot_id": "x"})
    with thumbnails._looking:
        answer = admin.get(f"/fleet/computers/{one.pk}/thumbnail.jpg")
    assert answer.status_code == 404 and b"try again" in answer.content
    again = admin.get(f"/fleet/computers/{one.pk}/thumbnail.jpg")
    assert again.status_code == 404 and b"try again" not in again.content


def test_like_causes_are_counted_together(desks: Pool, host: Host) -> None:
    for n in range(3):
        computer(desks, host, f"d-{n}", "gone", cause=f"d-{n} was not ready within {20 + n} s\nlog")
    computer(desks, host, "other", "gone", cause="no memory")
    found = [(one.cause, one.count) for one in fleet.failures()]
    assert found == [("it was not ready within … s", 3), ("no memory", 1)]


def test_metrics_need_the_token_or_an_admin(
    client: Client,
    settings,
    desks: Pool,
    host: Host,  # type: ignore[no-untyped-def]
) -> None:
    settings.METRICS_TOKEN = ""
    assert client.get("/metrics", headers={"authorization": "Bearer "}).status_code == 403
    settings.METRICS_TOKEN = "sesame"
    assert client.get("/metrics").status_code == 403
    assert client.get("/metrics", headers={"authorization": "Bearer open"}).status_code == 403
    computer(desks, host, "one")
    held(computer(desks, host, "two"))
    now = timezone.now()
    LeaseRequest.objects.create(
        pool=desks, tenant="t", purpose="human", priority=0, turn=1, idempotency_key="r",
        enqueued_at=now - timedelta(seconds=30), bind_deadline=now + timedelta(minutes=5),
        last_asked_at=now,
    )  # fmt: skip
    text = client.get("/metrics", headers={"authorization": "Bearer sesame"}).content.decode()
    assert 'tandem_sandboxes{pool="desks",state="ready"} 1.0' in text
    assert 'tandem_lease_requests_waiting{pool="desks"} 1.0' in text
    assert f'tandem_host_up{{host="{host.name}"}} 1.0' in text
    assert 'tandem_leases{purpose="human"} 1.0' in text
