"""The gateway: only who shows a certificate, a fresh token and a live lease gets to a computer."""

from __future__ import annotations

import ssl
import struct
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox.gateway import certificates, links, server, tokens
from sandbox.gateway.routes import gateway_to
from sandbox.leasing import leases
from sandbox.models import Host, Lease, Sandbox
from sandbox.provider import DesktopLost, StaleLease
from tests.sandbox.gateways import HOST, Caller, certify, echo, gateway, leased, preamble

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certify(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def context(folder: Path) -> ssl.SSLContext:
    return certificates.client_context(folder)


@pytest.fixture
def computer(tmp_path: Path) -> Iterator[Path]:
    with echo(tmp_path / "echo.sock") as path:
        yield path


@pytest.fixture
def port(transactional_db: None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(server, "RECHECK_S", 0.1)
    with gateway(folder) as running:
        yield running.port


@pytest.fixture
def lease(port: int, computer: Path, annotator: Any) -> Lease:
    return leased(annotator, computer)


@pytest.fixture
def call(port: int, context: ssl.SSLContext) -> Iterator[Callable[[], Caller]]:
    opened: list[Caller] = []

    def call() -> Caller:
        opened.append(Caller(port, context))
        return opened[-1]

    yield call
    for caller in opened:
        caller.socket.close()


Call = Callable[[], Caller]


def test_bytes_go_both_ways_unchanged(call: Call, lease: Lease) -> None:
    caller = call()
    assert caller.hello(preamble(lease)) == {"ok": True}
    data = bytes(range(256)) * 2048
    caller.send(data)
    assert caller.read(len(data)) == data
    assert caller.socket.version() == "TLSv1.3"


def test_no_certificate_and_one_of_another_authority_get_nothing(
    port: int, folder: Path, tmp_path: Path, lease: Lease
) -> None:
    nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    nobody.load_verify_locations(folder / "ca.pem")
    foreign = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    foreign.load_verify_locations(folder / "ca.pem")
    foreign.load_cert_chain(certify(tmp_path / "other") / "client.pem")
    as_host = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    as_host.load_verify_locations(folder / "ca.pem")
    as_host.load_cert_chain(folder / "host.pem")  # a host's certificate opens no other host
    for context in (nobody, foreign, as_host):
        with Caller(port, context) as caller:  # TLS 1.3: the refusal comes after our handshake
            try:
                assert caller.hello(preamble(lease)) == {}
            except ConnectionError:
                pass


def test_a_caller_trusts_only_the_host_that_it_means(
    port: int, context: ssl.SSLContext, tmp_path: Path
) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="other-host"):
        Caller(port, context, host="other-host")
    stranger = certificates.client_context(certify(tmp_path / "other"))
    with pytest.raises(ssl.SSLCertVerificationError):
        Caller(port, stranger)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"token": "forged:token"}, "token"),
        ({"service": "rfb", "claims": {"service": "guest"}}, "token"),
        ({"epoch": 4}, "token"),
        ({"epoch": 2, "claims": {"epoch": 2}}, "stale"),
        ({"claims": {"mode": "view"}}, "forbidden"),
        ({"sandbox": "desk-2"}, "token"),
        ({"sandbox": "desk-2", "claims": {"sandbox": "desk-2"}}, "token"),
    ],
)
def test_what_does_not_fit_the_rows_is_refused(
    call: Call, lease: Lease, computer: Path, changed: dict[str, Any], code: str
) -> None:
    leased(None, computer, name="desk-2")
    assert call().hello(preamble(lease, **changed))["refused"] == code


def test_a_token_opens_one_connection(call: Call, lease: Lease) -> None:
    said = preamble(lease)
    assert call().hello(said) == {"ok": True}
    assert "used before" in call().hello(said)["reason"]


def test_an_old_token_opens_none(call: Call, lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "TTL_S", -1)
    assert "older than" in call().hello(preamble(lease))["reason"]


def test_computers_of_other_hosts_are_unknown(call: Call, computer: Path) -> None:
    elsewhere = leased(None, computer, name="desk-3", host="third-host")
    assert call().hello(preamble(elsewhere))["refused"] == "unknown"


def test_a_computer_that_does_not_answer_is_gone(call: Call, tmp_path: Path, port: int) -> None:
    dead = leased(None, tmp_path / "nothing.sock", name="desk-4")
    assert call().hello(preamble(dead))["refused"] == "gone"


@pytest.mark.parametrize("ending", ["released", "epoch", "expired"])
def test_an_open_connection_ends_with_its_lease(call: Call, lease: Lease, ending: str) -> None:
    caller = call()
    assert caller.hello(preamble(lease)) == {"ok": True}
    if ending == "released":
        leases.release(lease, reason="done")
    elif ending == "epoch":
        Sandbox.objects.update(epoch=9)
    else:
        Lease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert caller.gone()
    assert call().hello(preamble(lease))["refused"] == "stale"


def test_a_caller_that_reads_nothing_is_hung_up_on_and_costs_little(
    call: Call, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "SLOW_S", 0.2)
    caller = call()
    assert caller.hello(preamble(lease)) == {"ok": True}
    sent = 0
    with pytest.raises((ConnectionError, ssl.SSLError, TimeoutError)):
        while True:  # the echo comes back, nobody takes it
            caller.send(bytes(1 << 16))
            sent += 1 << 16
            assert sent < 256 << 20


def test_one_computer_has_so_many_connections(
    call: Call, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_OF_ONE", 2)
    callers = [call() for _ in range(3)]
    answers = [caller.hello(preamble(lease)) for caller in callers]
    assert [answer.get("refused") for answer in answers] == [None, None, "busy"]


def test_a_huge_preamble_is_refused_before_it_is_read(call: Call, lease: Lease) -> None:
    caller = call()
    caller.send(struct.pack(">H", 0xFFFF))
    assert caller.gone()


@given(st.binary(min_size=1, max_size=64))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_gateway_survives_any_first_bytes(call: Call, data: bytes) -> None:
    caller = call()
    caller.send(data)
    caller.socket.shutdown(1)
    caller.gone()


def test_the_row_says_which_way(lease: Lease, settings: Any, folder: Path) -> None:
    settings.SANDBOX_TLS = folder
    way = gateway_to(lease)
    assert way is not None and way.host == HOST and way.place()[0] == "127.0.0.1"
    settings.SANDBOX_HOST = HOST
    assert gateway_to(lease) is None
    settings.SANDBOX_HOST = "web"
    Host.objects.update(address="")
    assert gateway_to(lease) is None


def test_refusals_reach_the_caller_as_what_they_are(
    lease: Lease, settings: Any, folder: Path
) -> None:
    settings.SANDBOX_TLS = folder
    Sandbox.objects.update(epoch=4)
    Lease.objects.update(epoch=4)
    current = Lease.objects.select_related("sandbox").get()
    Sandbox.objects.update(epoch=5)  # between the caller's look and the gateway's
    way = gateway_to(current)
    from sandbox.providers import load

    with pytest.raises(StaleLease, match="is over"):
        load("local").connect_through(current.sandbox.as_handle(), way)  # type: ignore[attr-defined]
    settings.SANDBOX_TLS = folder / "nowhere"
    with pytest.raises(DesktopLost, match="sandbox_ca"):
        load("local").connect_through(  # type: ignore[attr-defined]
            current.sandbox.as_handle(), gateway_to(current)
        )
