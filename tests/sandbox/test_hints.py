"""Hints about a lease between processes, through a real Valkey."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Any

import pytest

from sandbox.screen import hints
from sandbox.screen.gate import Hint
from tests.sandbox.screens import until


@pytest.fixture(autouse=True)
def layer(valkey_url: str, settings: Any) -> None:
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [valkey_url]},
        }
    }


async def test_a_screen_of_another_process_hears_and_answers() -> None:
    heard: list[Hint] = []
    quiet = 0

    async def be_quiet() -> None:
        nonlocal quiet
        quiet += 1

    with hints.listening(7, heard.append, be_quiet):
        here = hints._here.pop(7)  # whoever sends now is another process: it knows of no screen
        try:
            async with asyncio.timeout(60):
                while not quiet:  # until the screen has subscribed
                    await asyncio.to_thread(hints.take_away, 7)
            await asyncio.to_thread(hints._tell, 7, True)
            await hints.announce(7, "newer")
            await until(lambda: len(heard) == 2)
            assert heard == [Hint(human_control=True), Hint(controller="newer")]
        finally:
            hints._here[7] = here


async def test_who_only_looks_does_not_answer_for_the_hand_that_still_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Control was taken as soon as a watcher had answered; the last that was typed came too late."""
    loop, began, written = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    written.set()

    async def nothing_to_write() -> None:
        pass

    async def write() -> None:
        began.set()
        await written.wait()

    def ignore(hint: Hint) -> None:
        pass

    with ExitStack() as screens:
        screens.enter_context(hints.listening(8, ignore, nothing_to_write, hand=False))
        screens.enter_context(hints.listening(8, ignore, write))
        here = hints._here.pop(8)  # whoever asks now is another process
        try:
            async with asyncio.timeout(60):
                while not began.is_set():  # until the screens have subscribed
                    await asyncio.to_thread(hints.take_away, 8)
                monkeypatch.setattr(hints, "QUIET_S", 30.0)
                began.clear()
                written.clear()
                taken = loop.run_in_executor(None, hints.take_away, 8)
                await began.wait()
                assert not (await asyncio.wait([taken], timeout=0.3))[0]
                written.set()
                await taken
        finally:
            written.set()
            hints._here[8] = here
