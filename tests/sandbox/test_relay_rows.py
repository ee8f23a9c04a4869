"""The relay as Tandem runs it: rows decide, hints hurry, and what a hand does becomes rows."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from blobs import open_store
from sandbox.leasing import leases
from sandbox.models import InputEvent, Lease, Sandbox
from sandbox.provider import Frame, Handle
from sandbox.screen import capture, tickets
from sandbox.screen.gate import Close
from sandbox.screen.relay import DatabaseGate, in_thread
from sandbox.screen.rfb import Key, Pointer, encode_input
from sandbox.screen.stream import Relay
from tests.sandbox.relays import serving
from tests.sandbox.screens import PASSWORD, recorder, until, viewer
from tests.sandbox.test_leases import acquire, make_sandbox
from tests.sandbox.test_relay import UPDATE
from trajectory import observation_from_dict

pytestmark = pytest.mark.django_db(transaction=True)


class Screen:
    """A desktop that can only be looked at."""

    def observe(self, *, elements: bool = False) -> Frame:
        assert elements
        return Frame(b"a picture", 320, 200, (), "http://page/", 12.5)

    def close(self) -> None:
        pass


Desk = tuple[int, Lease, bytearray]


@pytest.fixture
async def desk(
    transactional_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Desk]:
    """A relay on the database before a desktop that records: (port, lease, bytes that arrived)."""
    monkeypatch.setattr(leases, "connect", lambda lease: Screen())
    monkeypatch.setattr(capture, "FRAME_DEADLINE_S", 60.0)  # a busy machine's pictures come late
    async with recorder(tmp_path) as (socket, got):

        def prepare() -> Lease:
            owner = User.objects.create_user("owner")
            sandbox = make_sandbox()
            handle = Handle("fake", "desk", "boot", "", str(socket), PASSWORD)
            Sandbox.objects.filter(pk=sandbox.pk).update(handle=Sandbox.handle_record(handle))
            return acquire(owner)

        lease = await in_thread(prepare)()
        async with serving(Relay(DatabaseGate())) as port:
            yield port, lease, got


async def token(lease: Lease, mode: str = "control") -> str:
    issued: str = await in_thread(tickets.issue)(user=lease.owner, lease=lease, mode=mode)
    return issued


async def test_what_a_hand_does_is_there_when_control_is_handed_back(desk: Desk) -> None:
    port, lease, got = desk

    def hand_back() -> list[InputEvent]:
        with transaction.atomic():  # as the session does it: one transaction, read right after
            leases.give_control(lease, human=False)
            return list(InputEvent.objects.filter(lease=lease))

    async with viewer(port, await token(lease)) as screen:
        await screen.shake_hands()
        await in_thread(leases.give_control)(lease, human=True)
        typed = encode_input(Key(97, True)) + encode_input(Key(97, False))

        async def typing() -> bool:
            got.clear()
            await screen.send(encode_input(Pointer(9, 9, 0)) + UPDATE)
            await until(lambda: got.endswith(UPDATE))
            return len(got) > len(UPDATE)

        while not await typing():
            pass
        await screen.send(encode_input(Pointer(9, 9, 1)) + encode_input(Pointer(9, 9, 0)) + typed)
        await screen.send(encode_input(Key(98, True)))  # still down, and not written yet
        await until(lambda: got.endswith(encode_input(Key(98, True))))
        rows = await in_thread(hand_back)()
        assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
        assert [(row.buttons, row.keysym, row.down) for row in rows] == [
            (0, None, None),
            (1, None, None),
            (0, None, None),
            (None, 97, True),
            (None, 97, False),
            (None, 98, True),
            (None, 98, False),  # let go as control went
        ]
        press, key = rows[1], rows[3]
        assert press.frame == key.frame != ""
        observation = observation_from_dict(press.observation)
        assert (observation.screenshot, observation.captured_at) == (press.frame, 12.5)
        assert open_store(settings.STORAGE_URL).get(press.frame) == b"a picture"
        got.clear()
        await screen.send(typed + UPDATE)
        await until(lambda: got.endswith(UPDATE))
        assert bytes(got) == UPDATE


async def test_release_closes_the_socket_at_once(desk: Desk, caplog: Any) -> None:
    port, lease, _ = desk
    caplog.set_level(logging.INFO)
    secret = await token(lease, "view")
    async with viewer(port, secret) as screen:
        await screen.shake_hands()
        await in_thread(leases.release)(lease, reason="finished")
        assert await screen.closed() == (Close.LEASE_OVER, "the lease is over")
    assert "accepted" in caplog.text
    assert secret not in caplog.text and tickets.digest(secret) not in caplog.text


async def test_a_lost_hint_costs_seconds_only(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    port, lease, _ = desk
    monkeypatch.setattr("sandbox.screen.stream.RECHECK_S", 0.1)
    async with viewer(port, await token(lease)) as screen:
        await screen.shake_hands()
        await in_thread(User.objects.filter(pk=lease.owner_id).update)(is_active=False)
        assert (await screen.closed())[0] == Close.FORBIDDEN
