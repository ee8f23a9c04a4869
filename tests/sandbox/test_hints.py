"""Hints about a lease between processes, through a real Valkey."""

from __future__ import annotations

import asyncio
from typing import Any

from sandbox.screen import hints
from sandbox.screen.gate import Hint
from tests.sandbox.screens import until


async def test_a_screen_of_another_process_hears_and_answers(
    valkey_url: str, settings: Any
) -> None:
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [valkey_url]},
        }
    }
    heard: list[Hint] = []
    quiet = 0

    async def be_quiet() -> None:
        nonlocal quiet
        quiet += 1

    with hints.listening(7, heard.append, be_quiet):
        here = hints._here.pop(7)  # whoever sends now is another process: it knows of no screen
        try:
            async with asyncio.timeout(20):
                while not quiet:  # until the screen has subscribed
                    await asyncio.to_thread(hints.take_away, 7)
            await asyncio.to_thread(hints._tell, 7, True)
            await hints.announce(7, "newer")
            await until(lambda: len(heard) == 2)
            assert heard == [Hint(human_control=True), Hint(controller="newer")]
        finally:
            hints._here[7] = here
