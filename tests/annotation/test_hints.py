"""The hint socket: for those who may see the session, and nothing but hints."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async
from channels.routing import URLRouter
from django.db import transaction

from annotation import hints
from annotation.models import Session
from annotation.routing import websocket_urlpatterns
from annotation.tasks import tasks

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.fixture(autouse=True)
def channel_layer(valkey_url: str, settings: Any) -> None:
    """Hints go through Valkey, as between the processes of a real start."""
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [valkey_url]},
        }
    }


WITHIN_S = 60  # of itself an end waits one second


class Page:
    """A browser's end of the socket."""

    def __init__(self, user: Any, session_id: int) -> None:
        scope = {
            "type": "websocket",
            "path": f"/ws/session/{session_id}/",
            "headers": [],
            "subprotocols": [],
            "user": user,
        }
        self.end = ApplicationCommunicator(URLRouter(websocket_urlpatterns), scope)

    async def open(self) -> None:
        await self.end.send_input({"type": "websocket.connect"})
        assert (await self.end.receive_output(WITHIN_S))["type"] == "websocket.accept"

    async def heard(self) -> Any:
        return json.loads((await self.end.receive_output(WITHIN_S))["text"])

    async def close(self) -> None:
        await self.end.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.end.wait(WITHIN_S)


@database_sync_to_async
def make(author: Any) -> int:
    task = tasks.create(external_id="a", instruction="Do it.")
    row = Session.objects.create(task=task, author=author, expires_at="2030-01-01T00:00Z")
    return row.pk


async def test_the_author_hears_what_changed_after_the_commit(annotator: Any) -> None:
    pk = await make(annotator)
    page = Page(annotator, pk)
    await page.open()

    @database_sync_to_async
    def change() -> None:
        with transaction.atomic():
            hints.changed(pk, "proposals")

    await change()
    assert await page.heard() == {"changed": "proposals"}
    await page.close()


async def test_what_a_page_sends_is_ignored_whatever_it_is(annotator: Any) -> None:
    pk = await make(annotator)
    page = Page(annotator, pk)
    await page.open()
    for said in ({"text": "no JSON"}, {"text": "{}"}, {"bytes": b"\xff"}):
        await page.end.send_input({"type": "websocket.receive", **said})
    await database_sync_to_async(hints.changed)(pk, "step")
    assert await page.heard() == {"changed": "step"}
    await page.close()


async def test_a_stranger_is_closed_with_a_code(annotator: Any, stranger: Any) -> None:
    page = Page(stranger, await make(annotator))
    await page.open()
    message = await page.end.receive_output(WITHIN_S)
    assert (message["type"], message["code"]) == ("websocket.close", 4403)


async def test_a_change_that_was_rolled_back_is_not_told(annotator: Any) -> None:
    pk = await make(annotator)
    page = Page(annotator, pk)
    await page.open()

    @database_sync_to_async
    def change() -> None:
        with transaction.atomic():
            hints.changed(pk, "step")
            transaction.set_rollback(True)

    await change()
    await database_sync_to_async(hints.changed)(pk, "review")
    assert await page.heard() == {"changed": "review"}
    await page.close()
