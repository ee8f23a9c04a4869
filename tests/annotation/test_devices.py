"""A recorder is let in by its person in the browser, may send recordings, and is put out again."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from annotation.models import Device, DeviceCode, WrongCode
from annotation.recordings import devices
from annotation.recordings.errors import TooMuch, Wrong


def begin(address: str = "192.0.2.1", name: str = "laptop") -> dict[str, Any]:
    body = json.dumps({"device_name": name})
    answer = Client(REMOTE_ADDR=address).post(
        "/api/device/code", body, content_type="application/json"
    )
    assert answer.status_code == 200, answer.content
    return dict(answer.json())


def poll(code: str) -> Any:
    return Client().post(
        "/api/device/token", json.dumps({"device_code": code}), content_type="application/json"
    )


def signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_a_recorder_is_let_in_once_and_put_out_again(stranger: Any) -> None:
    begun = begin(name="my laptop\x00\n<b>")
    assert begun["verification_uri"].endswith("/device/") and begun["expires_in"] == 900
    DeviceCode.objects.update(interval_s=600)  # too early, however slow this machine is
    assert poll(begun["device_code"]).json()["error"] == "authorization_pending"
    assert poll(begun["device_code"]).json()["error"] == "slow_down"
    browser = signed_in(stranger)
    # Following a link approves nothing: the person has to answer.
    assert browser.get(begun["verification_uri_complete"]).status_code == 200
    page = browser.post("/device/", {"code": begun["user_code"].lower()})
    assert b"wants to be let in" in page.content and b"&lt;b&gt;" in page.content
    assert not Device.objects.exists()
    browser.post("/device/", {"code": begun["user_code"], "answer": "approve"})
    token = poll(begun["device_code"]).json()["access_token"]
    assert poll(begun["device_code"]).json()["error"] == "expired_token"
    row = Device.objects.get(user=stranger)
    assert token not in str(vars(row))
    headers = {"Authorization": f"Bearer {token}"}
    assert Client().get("/api/recorder/consent", headers=headers).json()["version"] == "1"
    # The token is for recordings alone.
    assert Client().get("/recordings/", headers=headers).status_code == 302
    browser.post(f"/device/{row.pk}/revoke/")
    assert Client().get("/api/recorder/consent", headers=headers).status_code == 401


def test_a_refused_or_expired_sign_in_gives_no_token(stranger: Any) -> None:
    first, second = begin(), begin()
    signed_in(stranger).post("/device/", {"code": first["user_code"], "answer": "refuse"})
    assert poll(first["device_code"]).json()["error"] == "access_denied"
    DeviceCode.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert poll(second["device_code"]).json()["error"] == "expired_token"
    assert not Device.objects.exists()


def test_guessing_codes_is_throttled_per_person(stranger: Any, annotator: Any) -> None:
    begun = begin()
    browser = signed_in(stranger)
    for _ in range(devices.WRONG_CODES):
        assert browser.post("/device/", {"code": "BBBB-BBBB"}).status_code == 400
    assert browser.post("/device/", {"code": begun["user_code"]}).status_code == 429
    assert signed_in(annotator).post("/device/", {"code": begun["user_code"]}).status_code == 200
    WrongCode.objects.update(at=timezone.now() - devices.WRONG_WINDOW)
    assert browser.post("/device/", {"code": begun["user_code"]}).status_code == 200


def test_sign_ins_that_wait_are_limited(db: None) -> None:
    for _ in range(devices.PER_ADDRESS):
        begin("192.0.2.7")
    with pytest.raises(TooMuch):
        devices.begin(device_name="", address="192.0.2.7")
    begin("192.0.2.8")


def test_nobody_revokes_anothers_recorder_and_a_gone_person_has_none(
    stranger: Any, annotator: Any
) -> None:
    begun = begin()
    devices.decide(begun["user_code"], by=stranger, approve=True)
    token = devices.poll(begun["device_code"])
    row = devices.device_of(token)
    assert row is not None and row.seen_at is None
    assert signed_in(annotator).post(f"/device/{row.pk}/revoke/").status_code == 404
    assert devices.device_of("") is None and devices.device_of(token + "x") is None
    stranger.is_active = False
    stranger.save()
    assert devices.device_of(token) is None


def test_a_decided_sign_in_is_not_decided_again(stranger: Any, annotator: Any) -> None:
    begun = begin()
    devices.decide(begun["user_code"], by=stranger, approve=True)
    with pytest.raises(devices.NoCode):
        devices.decide(begun["user_code"], by=annotator, approve=True)
    with pytest.raises(Wrong):
        devices.poll("no such code")
