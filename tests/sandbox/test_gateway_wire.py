"""Frames and certificates of the gateway, without one."""

from __future__ import annotations

import json
import stat
import struct
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.gateway import certificates, wire
from sandbox.gateway.certificates import CertificateProblem
from sandbox.provider import DesktopLost, StaleLease

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)
FIELDS = {"sandbox": JSON, "service": JSON, "epoch": JSON, "token": JSON}


@given(
    st.binary(max_size=200) | JSON.map(json.dumps) | st.fixed_dictionaries(FIELDS).map(json.dumps)
)
@settings(max_examples=60)
def test_any_frame_is_a_preamble_or_an_error(body: bytes | str) -> None:
    raw = body if isinstance(body, bytes) else body.encode()
    data = struct.pack(">H", min(len(raw), 0xFFFF)) + raw
    try:
        assert wire.missing(data) <= 0
        said = wire.preamble_of(data)
    except wire.WireError:
        return
    assert wire.preamble_of(wire.hello(said)) == said


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"refused": "stale", "reason": "over"}, StaleLease),
        ({"refused": "closed", "reason": "nothing there"}, wire.PortClosed),
        ({"refused": "token", "reason": "forged"}, DesktopLost),
        ({"what": "ever"}, DesktopLost),
    ],
)
def test_refusals_have_types(answer: dict[str, str], error: type[Exception]) -> None:
    with pytest.raises(error):
        wire.raise_refusal(wire.frame(answer), gateway="there:1")
    wire.raise_refusal(wire.frame({"ok": True}), gateway="there:1")


def test_private_files_are_private_and_renewed(tmp_path: Path, capsys: Any) -> None:
    folder, other = tmp_path / "tls", tmp_path / "for-a-host"
    call_command("sandbox_ca", "client", "web-1", folder=folder)
    call_command("sandbox_ca", "host", "host-1", folder=folder, into=other)
    first = (other / "host.pem").read_bytes()
    call_command("sandbox_ca", "host", "host-1", folder=folder, into=other)
    assert (other / "host.pem").read_bytes() != first
    assert sorted(path.name for path in other.iterdir()) == ["ca.pem", "host.pem"]  # never ca.key
    for path in (*folder.iterdir(), *other.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    call_command("sandbox_ca", "show", folder=other)
    assert "host.pem: host-1, 89 days left" in capsys.readouterr().out
    with pytest.raises(CommandError, match="whose"):
        call_command("sandbox_ca", "client", folder=folder)
    with pytest.raises(CertificateProblem, match=r"ca\.key is missing"):
        certificates.issue(other, role="host", name="host-2", into=other)


def test_an_expired_certificate_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates.make_authority(tmp_path)
    monkeypatch.setattr(certificates, "_BACKDATED", timedelta(days=3))
    for role in certificates.ROLES:
        certificates.issue(tmp_path, role=role, name="old", into=tmp_path, days=-1)
    with pytest.raises(
        CertificateProblem, match=r"expired at .* renew it with manage\.py sandbox_ca"
    ):
        certificates.client_context(tmp_path)
    with pytest.raises(CertificateProblem, match="expired"):
        certificates.server_context(tmp_path)
    with pytest.raises(CertificateProblem, match="missing"):
        certificates.client_context(tmp_path / "nothing")


def test_a_host_keeps_its_authority_and_an_interrupted_one_is_made_anew(tmp_path: Path) -> None:
    certificates.make_authority(tmp_path / "ca")
    host = tmp_path / "host"
    certificates.issue(tmp_path / "ca", role="host", name="host-1", into=host)
    trusted = (host / "ca.pem").read_bytes()
    with pytest.raises(CommandError, match=r"ca\.key is missing: certificates are made where"):
        call_command("sandbox_ca", "host", "host-1", folder=host)
    assert (host / "ca.pem").read_bytes() == trusted

    (tmp_path / "ca" / "ca.pem").unlink()
    assert certificates.make_authority(tmp_path / "ca")
    certificates.issue(tmp_path / "ca", role="client", name="web-1", into=tmp_path / "ca")


def test_certificates_that_are_missing_or_unreadable_are_named(tmp_path: Path) -> None:
    certificates.make_authority(tmp_path)
    certificates.issue(tmp_path, role="client", name="web-1", into=tmp_path)
    (tmp_path / "ca.pem").unlink()
    with pytest.raises(CertificateProblem, match=r"ca\.pem is missing"):
        certificates.client_context(tmp_path)
    (tmp_path / "ca.pem").mkdir()
    with pytest.raises(CertificateProblem, match=r"ca\.pem can't be read: Is a directory"):
        certificates.client_context(tmp_path)
