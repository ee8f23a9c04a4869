"""Tickets: once, soon, by the right person, for a lease that lives."""

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.utils import timezone

from sandbox.leasing import leases
from sandbox.models import Lease, StreamTicket
from sandbox.screen import tickets
from sandbox.screen.gate import Close, Grant, Refused, Standing
from tests.sandbox.test_leases import acquire, at_once, make_sandbox


@pytest.fixture
def lease(annotator: Any) -> Lease:
    make_sandbox()
    return acquire(annotator)


def code(answer: object) -> Close | None:
    return answer.code if isinstance(answer, Refused) else None


def issue(user: Any, lease: Lease, mode: str = "control", session_key: str = "") -> str:
    return tickets.issue(user=user, lease=lease, mode=mode, session_key=session_key)


def test_a_ticket_opens_once(annotator: Any, lease: Lease) -> None:
    token = issue(annotator, lease)
    grant = tickets.redeem(token)
    assert isinstance(grant, Grant)
    assert (grant.lease_id, grant.epoch, grant.mode) == (lease.pk, lease.epoch, "control")
    assert code(tickets.redeem(token)) == Close.NO_TICKET
    assert code(tickets.redeem("guessed")) == Close.NO_TICKET


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_gets_in(annotator: Any, lease: Lease) -> None:
    token = issue(annotator, lease)
    answers = at_once(6, lambda _: tickets.redeem(token))
    assert sum(isinstance(answer, Grant) for answer in answers) == 1
    assert sum(code(answer) == Close.NO_TICKET for answer in answers) == 5


def test_only_the_digest_is_kept(annotator: Any, lease: Lease) -> None:
    token = issue(annotator, lease)
    row = StreamTicket.objects.get()
    assert len(token) >= 43  # 256 bits
    assert token not in str(row.__dict__) and row.digest == tickets.digest(token)


def test_a_ticket_grows_old(annotator: Any, lease: Lease) -> None:
    token = issue(annotator, lease)
    StreamTicket.objects.update(expires_at=timezone.now())
    assert code(tickets.redeem(token)) == Close.NO_TICKET


def test_release_revokes_tickets_and_grants(annotator: Any, lease: Lease) -> None:
    grant = tickets.redeem(issue(annotator, lease))
    assert isinstance(grant, Grant) and isinstance(tickets.look(grant), Standing)
    waiting = issue(annotator, lease)
    leases.release(lease, reason="done")
    assert code(tickets.look(grant)) == Close.LEASE_OVER
    assert code(tickets.redeem(waiting)) == Close.NO_TICKET
    with pytest.raises(leases.LeaseOver):
        issue(annotator, lease)


def test_expiry_and_a_newer_epoch_end_a_grant(annotator: Any, lease: Lease) -> None:
    grant = tickets.redeem(issue(annotator, lease))
    assert isinstance(grant, Grant)
    Lease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert code(tickets.look(grant)) == Close.LEASE_OVER
    Lease.objects.update(expires_at=timezone.now() + timedelta(minutes=1))
    assert isinstance(tickets.look(grant), Standing)
    type(lease.sandbox).objects.update(epoch=9)
    assert code(tickets.look(grant)) == Close.LEASE_OVER


def test_signing_out_or_being_disabled_ends_a_grant(
    annotator: Any, lease: Lease, client: Client
) -> None:
    client.force_login(annotator)
    key = client.session.session_key
    assert key is not None
    grant = tickets.redeem(issue(annotator, lease, session_key=key))
    assert isinstance(grant, Grant) and isinstance(tickets.look(grant), Standing)
    Session.objects.all().delete()
    assert code(tickets.look(grant)) == Close.FORBIDDEN
    client.force_login(annotator)
    key = client.session.session_key
    grant = tickets.redeem(issue(annotator, lease, session_key=key or ""))
    assert isinstance(grant, Grant)
    type(annotator).objects.filter(pk=annotator.pk).update(is_active=False)
    assert code(tickets.look(grant)) == Close.FORBIDDEN


def test_who_may_have_which_ticket(
    annotator: Any, reviewer: Any, stranger: Any, admin_user: Any, lease: Lease
) -> None:
    assert issue(annotator, lease, "control") and issue(annotator, lease, "view")
    assert issue(reviewer, lease, "view") and issue(admin_user, lease, "view")
    for user, mode in (
        (reviewer, "control"),
        (admin_user, "control"),
        (stranger, "view"),
        (annotator, "root"),
    ):
        with pytest.raises(PermissionDenied):
            issue(user, lease, mode)


def test_the_view_gives_tickets_to_whom_it_may(
    annotator: Any, reviewer: Any, stranger: Any, lease: Lease, client: Client, caplog: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    address = f"/sandbox/leases/{lease.pk}/ticket"
    assert client.post(address).status_code == 401
    for user, mode, status in (
        (stranger, "view", 404),
        (reviewer, "control", 403),
        (reviewer, "view", 200),
        (annotator, "control", 200),
    ):
        client.force_login(user)
        answer = client.post(address, {"mode": mode})
        assert answer.status_code == status, (user, mode, answer.content)
    body = answer.json()
    assert (body["mode"], body["width"], body["height"]) == ("control", 1280, 720)
    assert "no-store" in answer["Cache-Control"]
    assert body["ticket"] not in caplog.text
    assert StreamTicket.objects.latest("pk").session_key == client.session.session_key
    assert client.get(address).status_code == 405
    assert client.post("/sandbox/leases/999999/ticket").status_code == 404
    leases.release(lease, reason="done")
    assert client.post(address).status_code == 409


def test_the_view_wants_a_csrf_token(annotator: Any, lease: Lease) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(annotator)
    assert client.post(f"/sandbox/leases/{lease.pk}/ticket").status_code == 403


def test_old_tickets_are_pruned(annotator: Any, lease: Lease) -> None:
    issue(annotator, lease)
    assert tickets.prune() == 0
    StreamTicket.objects.update(expires_at=timezone.now() - timedelta(days=2))
    assert tickets.prune() == 1
