"""One HTTP request of a browser, answered by a service; streamed both ways, bounded in size and time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

import httpcore

from sandbox.gateway.wire import PortClosed
from sandbox.preview import headers
from sandbox.preview.entry import Pass
from sandbox.provider import SandboxError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MAX_REQUEST = 64 << 20
MAX_ANSWER = 1 << 30
ANSWER_S = 60.0
"""How long a service may take to begin its answer, and to connect."""

QUIET_S = 300.0
"""How long nothing may come of an answer that has begun."""

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
_TIMES = {"connect": 5.0, "pool": 10.0, "read": QUIET_S, "write": 60.0}


class TooBig(Exception):
    """A request has more than MAX_REQUEST bytes."""


class Left(Exception):
    """The browser went away."""


async def forward(
    pool: httpcore.AsyncConnectionPool,
    holder: Pass,
    scope: Message,
    receive: Receive,
    send: Send,
) -> None:
    """Pass a request on and its answer back; what goes wrong before the answer is said in words."""
    if scope["method"] not in METHODS:
        return await say(send, 405, "this method is not passed on")
    target = scope["raw_path"] or b"/"
    if scope["query_string"]:
        target += b"?" + scope["query_string"]
    request = httpcore.Request(
        scope["method"],
        httpcore.URL(scheme=b"http", host=b"localhost", port=holder.place.port, target=target),
        headers=_framed(headers.to_service(scope["headers"], holder.place), scope["headers"]),
        content=_body(receive) if _has_body(scope["headers"]) else None,
        extensions={"timeout": _TIMES},
    )
    try:
        async with asyncio.timeout(ANSWER_S):
            answer = await pool.handle_async_request(request)
    except TooBig:
        return await say(send, 413, f"a request has at most {MAX_REQUEST >> 20} MiB")
    except (PortClosed, httpcore.ConnectError):
        return await say(send, 502, f"nothing answers on port {holder.place.port} of the computer")
    except SandboxError:
        return await say(send, 502, "the computer does not answer")
    except (TimeoutError, httpcore.TimeoutException):
        return await say(send, 504, "the service does not answer in time")
    except (httpcore.ProtocolError, httpcore.NetworkError):
        return await say(send, 502, "the service does not speak HTTP, or hung up")
    try:
        await _answer(answer, holder, send)
    finally:
        await answer.aclose()


async def say(send: Send, status: int, text: str) -> None:
    """Answer with a sentence of our own."""
    body = f"{text}\n".encode()
    start = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
    ]
    await send(
        {"type": "http.response.start", "status": status, "headers": [*start, *headers.OURS]}
    )
    await send({"type": "http.response.body", "body": body})


async def _answer(answer: httpcore.Response, holder: Pass, send: Send) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": answer.status,
            "headers": headers.to_browser(list(answer.headers), holder.place),
        }
    )
    size = 0
    async for piece in answer.aiter_stream():
        size += len(piece)
        if size > MAX_ANSWER:
            raise httpcore.RemoteProtocolError("the answer is too big")
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _has_body(found: headers.Headers) -> bool:
    return any(key.lower() in (b"content-length", b"transfer-encoding") for key, _ in found)


def _framed(passed: headers.Headers, asked: headers.Headers) -> headers.Headers:
    """Say that a body of unknown length comes in pieces."""
    if any(key.lower() == b"transfer-encoding" for key, _ in asked):
        kept = [(key, value) for key, value in passed if key.lower() != b"content-length"]
        return [*kept, (b"transfer-encoding", b"chunked")]
    return passed


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Left
        piece = message.get("body", b"")
        size += len(piece)
        if size > MAX_REQUEST:
            raise TooBig
        yield piece
        if not message.get("more_body", False):
            return
