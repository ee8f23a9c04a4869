"""The hint socket: for those who may see the session, and nothing but hints."""

from __future__ import annotations

from typing import Any

import pytest
from channels.db import database_sync_to_async
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.db import transaction

from annotation import hints, tasks
from annotation.models import Session
from annotation.routing import websocket_urlpatterns

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


def socket(user: Any, session_id: int) -> WebsocketCommunicator:
    communicator = WebsocketCommunicator(
        URLRouter(websocket_urlpatterns), f"/ws/session/{session_id}/"
    )
    communicator.scope["user"] = user
    return communicator


@database_sync_to_async
def make(author: Any) -> int:
    task = tasks.create(external_id="a", instruction="Do it.")
    row = Session.objects.create(task=task, author=author, expires_at="2030-01-01T00:00Z")
    return row.pk


async def test_the_author_hears_what_changed_after_the_commit(annotator: Any) -> None:
    pk = await make(annotator)
    page = socket(annotator, pk)
    assert (await page.connect())[0]

    @database_sync_to_async
    def change() -> None:
        with transaction.atomic():
            hints.changed(pk, "proposals")

    await change()
    assert await page.receive_json_from() == {"changed": "proposals"}
    await page.disconnect()


async def test_a_stranger_is_closed_with_a_code(annotator: Any, stranger: Any) -> None:
    page = socket(stranger, await make(annotator))
    await page.connect()
    message = await page.receive_output()
    assert (message["type"], message["code"]) == ("websocket.close", 4403)


async def test_a_change_that_was_rolled_back_is_not_told(annotator: Any) -> None:
    pk = await make(annotator)
    page = socket(annotator, pk)
    await page.connect()

    @database_sync_to_async
    def change() -> None:
        with transaction.atomic():
            hints.changed(pk, "step")
            transaction.set_rollback(True)

    await change()
    assert await page.receive_nothing()
    await page.disconnect()
