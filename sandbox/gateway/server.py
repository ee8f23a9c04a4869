"""The gateway: checks who comes in by the host's one port, and from then on only copies bytes.

It runs in a thread of the sandbox host. What it holds is bounded: connections in all and of each
computer, the bytes that wait, and how long everything may take.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import uvloop
from django.db import Error as DatabaseError
from django.db import connection

from sandbox.dial import KEEPALIVE
from sandbox.gateway import admission, certificates, links, wire
from sandbox.gateway.admission import Denied
from sandbox.gateway.links import BUFFER, Link, Streams
from sandbox.gateway.tokens import Used
from sandbox.gateway.wire import Preamble, Refusal, WireError
from sandbox.provider import DesktopLost, SandboxError, StaleLease

log = logging.getLogger(__name__)

MOST = 512
"""Connections at once; the next is hung up on before its handshake."""

MOST_OF_ONE = 48
"""Connections to one computer at once; the next is refused as busy."""

HELLO_S = 5.0
"""How long the handshake may take, and then the preamble."""

RECHECK_S = 2.0
"""How often the leases of open connections are looked at."""

BLIND_S = 15.0
"""For how long connections stay open while the rows can't be read."""

_START_S = 10.0
T = TypeVar("T")


class GatewayFailed(Exception):
    """The gateway can't listen; the message says why."""


class Server:
    """The gateway of one host: `start` and `stop` it from any thread."""

    def __init__(self, *, host: str, listen: str, folder: Path) -> None:
        self.host, self.listen = host, listen
        self.port = 0  # known once it listens
        self._folder = folder
        self._context = certificates.server_context(folder)
        self._certified = self._certificate_time()
        self._used = Used()
        self._links: set[Link] = set()
        self._open = 0
        self._asking = ThreadPoolExecutor(2, thread_name_prefix="gateway-rows")
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._stop: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._run, name="gateway", daemon=True)

    def start(self) -> None:
        """Listen, in a thread of its own; raises GatewayFailed."""
        self._thread.start()
        self._ready.wait(_START_S)
        if not self.port:
            raise GatewayFailed(f"no gateway at {self.listen}: {self._failure or 'it is late'}")

    def stop(self) -> None:
        """Break every connection and end the thread."""
        if self._stop is not None:
            self._stop()
        self._thread.join(_START_S)
        self._asking.shutdown(wait=False, cancel_futures=True)

    # -- the thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._failure = error
            log.exception("the gateway of %s ended", self.host)
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        loop, stopping = asyncio.get_running_loop(), asyncio.Event()
        address, _, port = self.listen.rpartition(":")
        server = await asyncio.start_server(
            self._accept, address.strip("[]") or None, int(port), limit=BUFFER
        )

        def stop() -> None:
            with suppress(RuntimeError):  # the loop has ended by itself
                loop.call_soon_threadsafe(stopping.set)

        self._stop = stop
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        watching = asyncio.create_task(self._watch())
        try:
            await asyncio.wait(
                [watching, asyncio.create_task(stopping.wait())],
                return_when=asyncio.FIRST_COMPLETED,
            )
            if watching.done():
                watching.result()
        finally:
            watching.cancel()
            server.close()
            self._end_all("the gateway stops")

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._open >= MOST:
            writer.transport.abort()
            return
        self._open += 1
        try:
            await self._let_in(reader, writer)
        except (OSError, TimeoutError, WireError, asyncio.IncompleteReadError) as error:
            # Port scans and strangers come here; nothing is said to who shows no certificate.
            log.info("gateway: a caller was not let in: %r", error)
        except Exception:
            log.exception("gateway: a connection failed")
        finally:
            self._open -= 1
            writer.transport.abort()

    async def _let_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        plain: socket.socket = writer.get_extra_info("socket")
        for option in KEEPALIVE:
            plain.setsockopt(*option)
        async with asyncio.timeout(HELLO_S):
            await writer.start_tls(self._context)
        async with asyncio.timeout(HELLO_S):
            data = b""
            while (need := wire.missing(data)) > 0:
                data += await reader.readexactly(need)
        try:
            link = await self._admit(wire.preamble_of(data))
        except WireError as error:
            link = Denied(Refusal.PREAMBLE, str(error))
        if isinstance(link, Denied):
            return await self._refuse(writer, link)
        try:
            await self._join(link, (reader, writer))
        finally:
            self._links.discard(link)
            if link.why:
                log.info(
                    "gateway: %s %s: %s", link.admitted.sandbox, link.admitted.service, link.why
                )

    async def _admit(self, preamble: Preamble) -> Link | Denied:
        claims = admission.claims_of(preamble, self._used)
        if isinstance(claims, Denied):
            return claims
        try:
            admitted = await self._ask(partial(admission.admit, claims, host=self.host))
        except DatabaseError as error:
            log.error("gateway: the rows can't be read: %s", error)
            return Denied(Refusal.BUSY, "the host can't read its rows: try again")
        if isinstance(admitted, Denied):
            return admitted
        if sum(link.admitted.sandbox == admitted.sandbox for link in self._links) >= MOST_OF_ONE:
            reason = f"{admitted.sandbox} has {MOST_OF_ONE} connections already"
            return Denied(Refusal.BUSY, reason)
        link = Link(admitted, asyncio.get_running_loop().time())
        self._links.add(link)
        return link

    async def _join(self, link: Link, caller: Streams) -> None:
        admitted = link.admitted
        try:
            computer = await links.open_computer(admitted)
        except SandboxError as error:
            return await self._refuse(caller[1], Denied(_code(error), str(error)))
        caller[1].write(wire.frame({"ok": True}))
        log.debug("gateway: %s %s: lease %d", admitted.sandbox, admitted.service, admitted.lease)
        await link.copy(caller, computer)

    async def _refuse(self, writer: asyncio.StreamWriter, denied: Denied) -> None:
        log.warning("gateway: refused (%s): %s", denied.code, denied.reason)
        with suppress(TimeoutError):
            async with asyncio.timeout(HELLO_S):
                writer.write(wire.frame({"refused": denied.code, "reason": denied.reason[:300]}))
                writer.close()
                await writer.wait_closed()

    # -- who may stay --------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """End what lost its lease or is idle; all of it once the rows can't be read for BLIND_S."""
        loop = asyncio.get_running_loop()
        seen = loop.time()
        while True:
            await asyncio.sleep(RECHECK_S)
            now = loop.time()
            self._renew_certificate()
            looked_at = list(self._links)
            leases = {link.admitted.lease for link in looked_at}
            try:
                held = await self._ask(partial(admission.standing, leases))
                seen = now
            except DatabaseError as error:
                log.error("gateway: the rows can't be read: %s", error)
                if now - seen > BLIND_S:
                    self._end_all(f"the rows can't be read for {BLIND_S:g} s")
                continue
            for link in looked_at:
                if link.admitted.lease not in held:
                    link.end(f"lease {link.admitted.lease} is over")
                elif link.idle(now):
                    link.end("nothing came for too long")

    def _end_all(self, why: str) -> None:
        for link in list(self._links):
            link.end(why)

    def _renew_certificate(self) -> None:
        """Use a renewed certificate for those who come from now on."""
        with suppress(OSError, ssl.SSLError):
            if (changed := self._certificate_time()) != self._certified:
                self._context.load_cert_chain(self._folder / "host.pem")
                self._certified = changed
                log.info("gateway: a new certificate")

    def _certificate_time(self) -> int:
        return (self._folder / "host.pem").stat().st_mtime_ns

    async def _ask(self, question: Callable[[], T]) -> T:
        """Ask the rows in a thread that keeps its connection; a broken one is opened again once."""

        def answer() -> T:
            try:
                return question()
            except DatabaseError:
                connection.close()
                return question()

        return await asyncio.get_running_loop().run_in_executor(self._asking, answer)


def _code(error: SandboxError) -> Refusal:
    if isinstance(error, StaleLease):
        return Refusal.STALE
    return Refusal.GONE if isinstance(error, DesktopLost) else Refusal.CLOSED
