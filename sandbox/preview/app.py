"""The ASGI application of every host name below PREVIEW_HOST; the product is never served there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from django.conf import settings

from sandbox.preview import entry, headers, names, pages, sockets
from sandbox.preview.entry import Pass
from sandbox.preview.names import Place
from sandbox.preview.pages import Message, Receive, Send, say
from sandbox.preview.pools import Pools

log = logging.getLogger(__name__)

ENTER = "/.tandem/enter"
"""Where a ticket is posted; a service can't have a page there."""

RECHECK_S = 2.0
"""For how long a look at the rows is believed, and how often open connections are looked at."""

MOST = 256
"""Requests and WebSockets at once in this process, and a quarter of it for each lease."""

_MAX_TICKET = 512
_OVER = "This page's lease is over, or you are signed out. Open it from the workbench again."
_in_thread = partial(database_sync_to_async, thread_sensitive=False)


class Preview:
    """Lets browsers in by ticket, then by cookie, and passes on what they ask."""

    def __init__(self) -> None:
        self._pools = Pools()
        self._known: dict[tuple[str, Place], tuple[float, Pass | None]] = {}
        self._busy: dict[int, int] = {}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request or WebSocket; `names.is_preview` has said that it is for us."""
        found = scope["headers"]
        host = headers.one(found, b"host")
        place = names.place_of(host)
        if place is None:
            return await _refuse(scope, receive, send, 404, "There is no such page.")
        secure = scope["scheme"] in ("https", "wss") or settings.SESSION_COOKIE_SECURE
        name = "__Host-tandem-preview" if secure else "tandem-preview"
        if scope["type"] == "http" and scope["path"] == ENTER:
            return await self._enter(scope, receive, send, place, name, secure)
        own = f"{'https' if secure else 'http'}://{host}"
        method = scope.get("method", "")
        why = headers.foreign(found, own=own, method=method)
        if not why and scope["type"] == "websocket" and not headers.one(found, b"origin"):
            why = "a WebSocket without an origin"
        if why:
            return await _refuse(scope, receive, send, 403, why)
        cookie = headers.cookie(found, name)
        holder = await self._look(cookie, place)
        if holder is None:
            return await _refuse(scope, receive, send, 403, _OVER)
        await self._counted(holder, cookie, scope, receive, send)

    async def _enter(
        self, scope: Message, receive: Receive, send: Send, place: Place, name: str, secure: bool
    ) -> None:
        body = b""
        while scope["method"] == "POST":
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body", False) or len(body) > _MAX_TICKET:
                break
        token = parse_qs(body[:_MAX_TICKET].decode("latin-1")).get("ticket", [""])[0]
        cookie = await _in_thread(entry.redeem)(token, place) if token else None
        if cookie is None:
            return await say(send, 403, "The ticket was used already or is too old. Try again.")
        rules = f"{name}={cookie}; Path=/; HttpOnly; SameSite=Lax{'; Secure' if secure else ''}"
        started = [(b"location", b"/"), (b"set-cookie", rules.encode()), (b"content-length", b"0")]
        await send(
            {"type": "http.response.start", "status": 303, "headers": [*started, *headers.OURS]}
        )
        await send({"type": "http.response.body", "body": b""})

    async def _counted(
        self, holder: Pass, cookie: str, scope: Message, receive: Receive, send: Send
    ) -> None:
        lease = holder.place.lease
        if sum(self._busy.values()) >= MOST or self._busy.get(lease, 0) >= MOST // 4:
            return await _refuse(scope, receive, send, 503, "Too many requests at once.")
        self._busy[lease] = self._busy.get(lease, 0) + 1
        try:
            await self._watched(holder, cookie, self._serve(holder, scope, receive, send))
        except pages.Left:
            pass
        finally:
            self._busy[lease] -= 1
            if not self._busy[lease]:
                del self._busy[lease]

    async def _serve(self, holder: Pass, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            pool = await self._pools.of(holder)
            return await pages.forward(pool, holder, scope, receive, send)
        if (await receive())["type"] == "websocket.connect":
            await sockets.join(holder, scope, receive, send)

    async def _watched(self, holder: Pass, cookie: str, serving: Coroutine[Any, Any, None]) -> None:
        """Serve, and stop in the middle once the pass does not hold any more."""
        task = asyncio.create_task(serving)
        try:
            while not (await asyncio.wait([task], timeout=RECHECK_S))[0]:
                if await self._look(cookie, holder.place) is None:
                    log.info("lease %d: a preview ends with its lease", holder.place.lease)
                    await self._pools.drop(holder.ticket)
                    return
            task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _look(self, cookie: str, place: Place) -> Pass | None:
        if not cookie:
            return None
        now = asyncio.get_running_loop().time()
        at, holder = self._known.get((cookie, place), (-RECHECK_S, None))
        if now - at >= RECHECK_S:
            holder = await _in_thread(entry.look)(cookie, place)
            self._known.pop((cookie, place), None)
            self._known[cookie, place] = (now, holder)
            while len(self._known) > MOST:
                del self._known[next(iter(self._known))]
        return holder


async def _refuse(scope: Message, receive: Receive, send: Send, status: int, why: str) -> None:
    if scope["type"] == "http":
        return await say(send, status, why)
    await receive()
    await send({"type": "websocket.close", "code": 4000 + status})


app = Preview()
