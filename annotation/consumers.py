"""The socket of a session's page: hints only, {"changed": what}; the page re-reads the row."""

from __future__ import annotations

from typing import Any

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer

from annotation import access, hints

NO_ACCESS = 4403


class SessionHints(AsyncJsonWebsocketConsumer):
    """Passes on what `annotation.hints` sends; what the browser sends is ignored."""

    group = ""

    async def connect(self) -> None:
        session_id = self.scope["url_route"]["kwargs"]["session_id"]
        try:
            await database_sync_to_async(access.session_for)(self.scope["user"], session_id)
        except access.Denied:
            await self.accept()  # a refused handshake gives the page no code to read
            await self.close(code=NO_ACCESS)
            return
        self.group = hints.group(session_id)
        await self.channel_layer.group_add(self.group, self.channel_name)
        await self.accept()

    async def disconnect(self, code: int) -> None:
        if self.group:
            await self.channel_layer.group_discard(self.group, self.channel_name)

    async def receive(self, *_: Any, **__: Any) -> None:
        """Ignore it, whatever it is: a page asks by HTTP."""

    async def hint(self, event: dict[str, Any]) -> None:
        """Pass a hint on to the page."""
        await self.send_json({"changed": event["changed"]})
