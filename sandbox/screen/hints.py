"""Tell open screens that a lease changed.

A hint may be lost: every screen also looks at the row every few seconds. In the same process it
arrives without a broker.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction

from sandbox.screen.gate import Hint

log = logging.getLogger(__name__)

QUIET_S = 0.5
"""How long `take_away` waits for a screen to say that it takes no more input."""

RECONNECT_S = 1.0


@dataclass(frozen=True, eq=False)
class Listener:
    """A screen that is open in this process; `hand`: one that may type."""

    loop: asyncio.AbstractEventLoop
    heard: Callable[[Hint], None]
    quiet: Callable[[], Awaitable[None]]
    hand: bool


_here: dict[int, list[Listener]] = {}
_lock = threading.Lock()


def group(lease_id: int) -> str:
    """Return the name of the channel group that the screens of one lease listen to."""
    return f"lease.{lease_id}"


@contextmanager
def listening(
    lease_id: int,
    heard: Callable[[Hint], None],
    quiet: Callable[[], Awaitable[None]],
    *,
    hand: bool = True,
) -> Iterator[None]:
    """Call `heard` for every hint about a lease, on the running event loop.

    Only one with a `hand` is asked to be quiet: who only looks would answer before the other has
    written what it typed.
    """
    listener = Listener(asyncio.get_running_loop(), heard, quiet, hand)
    with _lock:
        _here.setdefault(lease_id, []).append(listener)
    elsewhere = asyncio.create_task(_listen_elsewhere(lease_id, listener))
    try:
        yield
    finally:
        elsewhere.cancel()
        with _lock:
            _here[lease_id].remove(listener)
            if not _here[lease_id]:
                del _here[lease_id]


def changed(lease_id: int, *, human_control: bool | None = None) -> None:
    """Tell the screens of a lease, once the transaction has committed, to look at its row again."""
    transaction.on_commit(lambda: _tell(lease_id, human_control), robust=True)


def take_away(lease_id: int) -> None:
    """Make the lease's controller drop input now, before the row says so, and write what it has.

    Returns when it has done that, or after QUIET_S: whoever reads the input next finds all of it.
    """
    hands = _hands(lease_id)
    if hands:
        waits = [asyncio.run_coroutine_threadsafe(_quiet(x), x.loop) for x in hands]
        for wait in waits:
            try:
                wait.result(QUIET_S)
            except TimeoutError:
                log.warning("lease %s: a screen was still writing after %s s", lease_id, QUIET_S)
        return
    _best_effort(lease_id, _ask_elsewhere)


def _hands(lease_id: int) -> list[Listener]:
    with _lock:
        return [listener for listener in _here.get(lease_id, ()) if listener.hand]


async def announce(lease_id: int, socket: str) -> None:
    """Tell the screens of a lease in other processes that `socket` is its controller now."""
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        await layer.group_send(group(lease_id), {"type": "hint", "controller": socket})
    except Exception as error:
        log.warning("the new controller of lease %s was not announced: %s", lease_id, error)


def _tell(lease_id: int, human_control: bool | None) -> None:
    with _lock:
        listeners = list(_here.get(lease_id, ()))
    for listener in listeners:
        listener.loop.call_soon_threadsafe(listener.heard, Hint(human_control=human_control))

    async def send(layer: Any, lease_id: int) -> None:
        await layer.group_send(group(lease_id), {"type": "hint", "human_control": human_control})

    _best_effort(lease_id, send)


def _best_effort(lease_id: int, send: Callable[[Any, int], Awaitable[None]]) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        async_to_sync(send)(layer, lease_id)
    except Exception as error:
        log.warning("a hint about lease %s was lost: %s", lease_id, error)


async def _ask_elsewhere(layer: Any, lease_id: int) -> None:
    reply = await layer.new_channel()
    message = {"type": "hint", "human_control": False, "reply": reply}
    await layer.group_send(group(lease_id), message)
    try:
        async with asyncio.timeout(QUIET_S):
            await layer.receive(reply)
    except TimeoutError:
        log.info("lease %s: no screen answered; none may be open", lease_id)


async def _quiet(listener: Listener) -> None:
    await listener.quiet()


async def _listen_elsewhere(lease_id: int, listener: Listener) -> None:
    layer = get_channel_layer()
    while layer is not None:
        try:
            channel = await layer.new_channel()
            await layer.group_add(group(lease_id), channel)
            try:
                while True:
                    await _hear(layer, await layer.receive(channel), lease_id, listener)
            finally:
                await layer.group_discard(group(lease_id), channel)
        except Exception as error:
            log.warning("no hints about lease %s for now: %s", lease_id, error)
            await asyncio.sleep(RECONNECT_S)


async def _hear(layer: Any, message: dict[str, Any], lease_id: int, listener: Listener) -> None:
    if "reply" in message:
        if listener.hand:
            # Whoever asks takes the first answer: it speaks for a terminal beside the screen too.
            hands = {listener, *_hands(lease_id)}
            waits = [asyncio.run_coroutine_threadsafe(_quiet(x), x.loop) for x in hands]
            await asyncio.gather(*map(asyncio.wrap_future, waits))
            await layer.send(message["reply"], {"type": "quiet"})
        return
    listener.heard(
        Hint(
            human_control=message.get("human_control"),
            controller=message.get("controller", ""),
        )
    )
