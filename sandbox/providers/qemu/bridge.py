"""`python -m sandbox.providers.qemu.bridge STATE`: one process that offers every machine's guest.sock.

It holds nothing that matters: when it dies, the next one finds the machines that run, greets them
anew, and goes on. It is told of new machines on STATE/bridge.sock, one line of JSON each way, and
ends when it has had none for a while.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import json
import os
import signal
from pathlib import Path
from typing import Any

from guest.mux import Link, LinkBroken
from sandbox.provider import DesktopLost
from sandbox.providers.qemu import process, way
from sandbox.providers.qemu.front import Front
from sandbox.providers.qemu.pictures import Screen
from sandbox.providers.qemu.way import Way

_GREET_S = 60.0
_RENEW_S = 60.0
_RETRY_S = 0.5
_IDLE_S = 10.0


class Served:
    """One machine: its way, its screen, and the socket that its clients use."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._run = folder, folder / "run"
        self._screen = Screen(self._run, started_at=(folder / "about.json").stat().st_mtime)
        self._way: Way | None = None
        self._server: asyncio.Server | None = None
        self._lock = asyncio.Lock()

    async def open(self, renewal: dict[str, Any] | None) -> None:
        """Greet the guest, renew it if asked; an earlier way and its clients end.

        Its picture can be had meanwhile; nothing gets inside before the guest is who it shall be.
        """
        async with self._lock:
            await self._shut()
            inside: asyncio.Future[Link] = asyncio.get_running_loop().create_future()
            about = process.read(self._folder)
            front = Front(inside, self._screen, size=(about.width, about.height))
            path = self._run / "guest.sock"
            path.unlink(missing_ok=True)
            self._server = await asyncio.start_unix_server(front.serve, str(path))
            try:
                self._way = await way.connect(self._run / "way.sock", seconds=_GREET_S)
                if renewal is not None:
                    await self._way.renew(renewal, seconds=_RENEW_S)
                    way.note_renewed(self._folder)
                inside.set_result(self._way.link)
            except BaseException:
                inside.set_exception(LinkBroken("the guest did not take its identity"))
                inside.exception()  # it may be that nobody waits
                await self._shut()
                raise

    async def lost(self) -> None:
        """Return when the way into the machine has ended."""
        if self._way is not None:
            await asyncio.wait([self._way.lost])

    def up(self) -> bool:
        """Whether there is a way into the machine now."""
        return self._way is not None and not self._way.lost.done()

    def runs(self) -> bool:
        """Whether there may be a machine yet: QEMU's socket is there."""
        return (self._run / "way.sock").exists()

    def renewed(self) -> bool:
        """Whether the guest has been told who it is since it was forked or restored."""
        return way.renewed(self._folder)

    async def close(self) -> None:
        async with self._lock:
            await self._shut()
            await asyncio.to_thread(self._screen.close)
            with contextlib.suppress(OSError):
                (self._run / "guest.sock").unlink(missing_ok=True)

    async def _shut(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._way is not None:
            await self._way.close()
        self._server = self._way = None


class Bridge:
    """All machines of one state folder."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._served: dict[str, Served] = {}
        self._keepers: dict[str, asyncio.Task[None]] = {}
        self._busy = 0

    async def run(self) -> None:
        """Serve until there is nothing to serve for a while."""
        for folder in sorted((self._state / "machines").glob("*")):
            if (folder / "run" / "way.sock").exists() and way.renewed(folder):
                self._keep(folder.name, first=None)
        path = self._state / "bridge.sock"
        path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self._asked, str(path))
        idle = 0.0
        while idle < _IDLE_S and self._state.is_dir():
            await asyncio.sleep(1.0)
            idle = 0.0 if self._keepers or self._busy else idle + 1.0
        server.close()
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)

    async def _asked(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._busy += 1
        try:
            request = json.loads(await reader.readline())
            answer = await self._do(request)
        except (DesktopLost, ValueError, KeyError, OSError) as error:
            answer = {"error": str(error)}
        finally:
            self._busy -= 1
        with contextlib.suppress(OSError):
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()

    async def _do(self, request: dict[str, Any]) -> dict[str, Any]:
        name, wanted = str(request["name"]), request["do"]
        if wanted == "open":
            served = self._served.get(name) or Served(self._state / "machines" / name)
            self._served[name] = served  # also one that does not open has to be closed
            await served.open(request["renewal"])
            self._keep(name, first=served)
            return {}
        if wanted == "serves":
            return {"serves": name in self._keepers}
        if wanted == "close":
            keeper = self._keepers.pop(name, None)
            if keeper is not None:
                keeper.cancel()
            if name in self._served:
                await self._served.pop(name).close()
            return {}
        raise ValueError(f"a bridge can't {wanted!r}")

    def _keep(self, name: str, *, first: Served | None) -> None:
        if name not in self._keepers:
            self._keepers[name] = asyncio.ensure_future(self._keeper(name, first))

    async def _keeper(self, name: str, served: Served | None) -> None:
        """Hold the way into one machine open for as long as the machine is there."""
        try:
            while True:
                try:
                    if served is None:
                        served = self._served[name] = Served(self._state / "machines" / name)
                        await served.open(None)
                    await served.lost()
                    await asyncio.sleep(_RETRY_S)  # the host may be about to open it itself
                    if not served.runs():
                        break
                    if not served.up() and served.renewed():
                        await served.open(None)
                except (DesktopLost, OSError) as error:
                    print(f"bridge: {name}: {error}", flush=True)
                    if not (self._state / "machines" / name / "run" / "way.sock").exists():
                        break
                    await asyncio.sleep(_RETRY_S)
        finally:
            self._keepers.pop(name, None)


def main() -> None:
    """Serve one state folder; a second bridge for it ends at once."""
    parser = argparse.ArgumentParser(prog="bridge", description=__doc__)
    parser.add_argument("state", type=Path)
    state: Path = parser.parse_args().state
    os.umask(0o077)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with (state / "bridge.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        asyncio.run(Bridge(state).run())


if __name__ == "__main__":
    main()
