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
_BREATH_S = 0.2
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
        self._asking = ThreadPoolExecutor(1, thread_name_prefix="gateway-rows")
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
        self._asking.submit(connection.close)  # that thread's own
        self._asking.shutdown(wait=True)

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
        listener = self._listener()

        def stop() -> None:
            with suppress(RuntimeError):  # the loop has ended by itself
                loop.call_soon_threadsafe(stopping.set)

        self._stop = stop
        self.port = listener.getsockname()[1]
        self._ready.set()
        parts = [
            asyncio.create_task(self._listen(listener)),
            asyncio.create_task(self._watch()),
            asyncio.create_task(stopping.wait()),
        ]
        try:
            done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for part in done:
                part.result()
        finally:
            for part in parts:
                part.cancel()
            listener.close()
            self._end_all("the gateway stops")

    def _listener(self) -> socket.socket:
        address, _, port = self.listen.rpartition(":")
        address = address.strip("[]")
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listener = socket.create_server((address, int(port)), family=family, backlog=128)
        listener.setblocking(False)
        return listener

    async def _listen(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        callers: set[asyncio.Task[None]] = set()
        while True:
            try:
                plain, _ = await loop.sock_accept(listener)
            except OSError as error:  # no more files, for one
                log.error("gateway: can't take a caller: %s", error)
                await asyncio.sleep(_BREATH_S)
                continue
            if len(callers) >= MOST:
                plain.close()
                continue
            caller = asyncio.create_task(self._take(plain))
            callers.add(caller)
            caller.add_done_callback(callers.discard)

    async def _take(self, plain: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=BUFFER)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport = None
        try:
            for option in KEEPALIVE:
                plain.setsockopt(*option)
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol, plain, ssl=self._context, ssl_handshake_timeout=HELLO_S
            )
            await self._let_in(reader, asyncio.StreamWriter(transport, protocol, reader, loop))
        except (OSError, TimeoutError, WireError, asyncio.IncompleteReadError) as error:
            # Port scans and strangers come here; nothing is said to who shows no certificate.
            log.info("gateway: a caller was not let in: %r", error)
        except Exception:
            log.exception("gateway: a connection failed")
        finally:
            if transport is not None:
                transport.abort()
            plain.close()

    async def _let_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
