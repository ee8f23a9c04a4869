"""The host's end of a machine's serial port: a link whose bytes go through QEMU's socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import time
import uuid
from pathlib import Path
from typing import Any

from guest.mux import NONCE_BYTES, Link, LinkBroken
from sandbox.provider import DesktopLost

_READ = 64 << 10


class Way:
    """A greeted link to one machine. `lost` is done when the port has closed or the guest cheated."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.link = Link(writer.write, writer.drain)
        self.lost: asyncio.Task[None] = asyncio.ensure_future(self._feed())

    async def renew(self, wanted: dict[str, Any], *, seconds: float) -> dict[str, Any]:
        """Give the machine its identity; raises DesktopLost with the guest's reason."""
        try:
            async with asyncio.timeout(seconds):
                answer = json.loads(await self.link.ask(json.dumps(wanted).encode()))
        except (TimeoutError, LinkBroken, ValueError) as error:
            raise DesktopLost(f"the guest did not take its new identity: {error!r}") from error
        if not isinstance(answer, dict) or "error" in answer:
            raise DesktopLost(f"the guest refused its new identity: {str(answer)[:500]}")
        return answer

    async def close(self) -> None:
        self.lost.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.lost

    async def _feed(self) -> None:
        try:
            while data := await self._reader.read(_READ):
                self.link.feed(data)
        except (OSError, LinkBroken) as error:
            print(f"way: {error!r}", flush=True)
        finally:
            self.link.lose()
            self._writer.close()


async def connect(path: Path, *, seconds: float) -> Way:
    """Return the way into a machine once its guest has greeted back; raises DesktopLost."""
    try:
        way = Way(*await asyncio.open_unix_connection(str(path)))
    except OSError as error:
        raise DesktopLost(f"no machine behind {path}: {error}") from error
    try:
        async with asyncio.timeout(seconds):
            await way.link.greet(secrets.token_bytes(NONCE_BYTES))
    except (TimeoutError, LinkBroken) as error:
        await way.close()
        raise DesktopLost(f"the guest did not answer within {seconds:g} s") from error
    except BaseException:
        await way.close()
        raise
    return way


def renewed(folder: Path) -> bool:
    """Whether the guest of the machine in `folder` has its identity: else only its host may enter."""
    return (folder / "renewed").exists()


def note_renewed(folder: Path) -> None:
    (folder / "renewed").touch()


def note_stale(folder: Path) -> None:
    """Say that the guest is about to wake up as what it was at another moment."""
    (folder / "renewed").unlink(missing_ok=True)


def identity(
    *, boot_id: str, width: int, height: int, limits: str, wait_s: float = 10.0
) -> dict[str, Any]:
    """Return what makes a machine another one than it was forked or restored from.

    `wait_s` bounds how long the guest may wait for its own session.
    """
    return {
        "boot_id": boot_id,
        "kernel_boot_id": str(uuid.uuid4()),
        "machine_id": uuid.uuid4().hex,
        "seed": secrets.token_hex(64),
        "time": time.time(),
        "width": width,
        "height": height,
        "limits": limits,
        "wait_s": wait_s,
    }
