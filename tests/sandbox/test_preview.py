"""What a computer serves, opened in a browser: one host name for each lease and port, and its rules."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.test import Client
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from guest.fencing import Gate
from guest.server import Server
from sandbox.gateway.certificates import client_context
from sandbox.leasing import leases
from sandbox.models import Lease, StreamTicket
from sandbox.preview import app as preview_app
from sandbox.preview import entry, headers, names, pages
from sandbox.preview.app import ENTER, Preview
from sandbox.preview.names import Place, is_preview, origin_of, place_of
from sandbox.screen.relay import in_thread
from tests.sandbox.gateways import HOST, certify, gateway, leased
from tests.sandbox.relays import serving

pytestmark = pytest.mark.django_db(transaction=True)
COOKIE = "tandem-preview"


async def service(scope: Any, receive: Any, send: Any) -> None:
    """What a program in the computer might serve; hostile where it can be."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept", "subprotocol": scope["subprotocols"][0]})
        while (message := await receive())["type"] == "websocket.receive":
            await send({**message, "type": "websocket.send"})
        return
    start: dict[str, Any] = {"type": "http.response.start", "status": 200, "headers": []}
    body = b""
    if scope["path"] == "/heard":
        body = b"\n".join(b": ".join(pair) for pair in scope["headers"])
        start["headers"] = [
            (b"set-cookie", b"sessionid=stolen; Domain=localhost"),
            (b"strict-transport-security", b"max-age=9"),
            (b"access-control-allow-origin", b"*"),
            (b"x-own", b"kept"),
        ]
    elif scope["path"] == "/away":
        port = scope["server"][1]
        start |= {"status": 302, "headers": [(b"location", b"http://127.0.0.1:%d/there?x" % port)]}
    elif scope["path"] == "/upload":
        size, more = 0, True
        while more:
            message = await receive()
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
        body = str(size).encode()
    elif scope["path"] == "/endless":
        await send(start)
        await receive()  # the empty body
        left = asyncio.ensure_future(receive())
        while not left.done():
            await send({"type": "http.response.body", "body": b"tick\n", "more_body": True})
            await asyncio.wait([left], timeout=0.02)
        return
    await send(start)
    await send({"type": "http.response.body", "body": body})


class Site:
    """The preview's server, and a browser's view of one service."""

    def __init__(self, listens: int, lease: Lease, port: int) -> None:
        self.place = Place(lease=lease.pk, port=port)
        self.origin = origin_of(self.place, scheme="http", product=f"localhost:{listens}")
        self.host = self.origin.removeprefix("http://")
        self.lease, self.listens = lease, listens
        self.http = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{listens}", headers={"host": self.host}, timeout=60
        )

    async def enter(self, user: Any) -> httpx.Response:
        token = await in_thread(entry.issue)(user=user, lease=self.lease, session_key="")
        answer = await self.http.post(ENTER, data={"ticket": token})
        self.http.headers["cookie"] = answer.headers["set-cookie"].partition(";")[0]
        return answer


@pytest.fixture
async def site(
    transactional_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Site]:
    """A service behind a real guest's forwarder, and the preview before it."""
    monkeypatch.setattr(preview_app, "RECHECK_S", 0.1)
    computer: Any = SimpleNamespace(gate=Gate(3))
    routes: Any = {"POST /v1/ports": lambda call: {"ports": []}}
    guest = Server(tmp_path / "guest.sock", computer, limits="none", routes=routes)
    threading.Thread(target=guest.serve_forever, daemon=True).start()
    try:
        owner = await in_thread(User.objects.create_user)("owner")
        lease = await in_thread(leased)(owner, tmp_path / "guest.sock", host="here")
        async with serving(service) as port, serving(Preview()) as listens:
            site = Site(listens, lease, port)
            async with site.http:
                yield site
    finally:
        guest.shutdown()
        guest.server_close()


async def test_a_ticket_opens_the_service_once_and_nothing_leaks(site: Site) -> None:
    assert (await site.http.get("/")).status_code == 403
    token = await in_thread(entry.issue)(user=site.lease.owner, lease=site.lease, session_key="")
    entered = await site.http.post(ENTER, data={"ticket": token})
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    rules = entered.headers["set-cookie"]
    assert rules.startswith(COOKIE) and "HttpOnly" in rules and "Domain" not in rules
    assert (await site.http.post(ENTER, data={"ticket": token})).status_code == 403
    site.http.headers["cookie"] = f"sessionid=product; {rules.partition(';')[0]}"
    answer = await site.http.get("/heard", headers={"origin": site.origin, "referer": site.origin})
    assert answer.status_code == 200
    heard = answer.text.lower()
    assert f"host: localhost:{site.place.port}" in heard
    assert f"origin: http://localhost:{site.place.port}" in heard
    assert "cookie" not in heard and "referer" not in heard and site.host not in heard
    for name in ("set-cookie", "strict-transport-security", "access-control-allow-origin"):
        assert name not in answer.headers
    assert answer.headers["x-own"] == "kept"
    assert answer.headers["content-security-policy"].startswith("sandbox ")
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"


async def test_pages_of_other_origins_get_nothing(site: Site) -> None:
    await site.enter(site.lease.owner)
    get = site.http.get
    for asked in (
        {"origin": "http://127.0.0.1"},
        {"origin": "null"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
        {"service-worker": "script"},
    ):
        assert (await get("/heard", headers=asked)).status_code == 403, asked
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert (await get("/heard", headers={**link, "sec-fetch-dest": "document"})).status_code == 200
    other = origin_of(
        Place(site.lease.pk, site.place.port + 1),
        scheme="http",
        product=f"localhost:{site.listens}",
    ).removeprefix("http://")
    assert (
        await get("/heard", headers={"host": other})
    ).status_code == 403  # a cookie is for one port


async def test_sizes_redirects_and_closed_ports(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    await site.enter(site.lease.owner)
    assert (await site.http.get("/away")).headers["location"] == "/there?x"
    assert (await site.http.post("/upload", content=bytes(3 << 20))).text == str(3 << 20)
    monkeypatch.setattr(pages, "MAX_REQUEST", 1000)
    assert (await site.http.post("/upload", content=bytes(2000))).status_code == 413
    closed = Site(site.listens, site.lease, 1)
    async with closed.http:
        await closed.enter(site.lease.owner)
        answer = await closed.http.get("/")
        assert answer.status_code == 502 and "port 1" in answer.text


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        (b"http://localhost:8000/x?y", b"/x?y"),
        (b"https://[::1]:8000", b"/"),
        (b"http://localhost:80001/", b"http://localhost:80001/"),
        (b"/in?next=http://localhost:8000/x", b"/in?next=http://localhost:8000/x"),
    ],
)
def test_only_where_a_redirect_leads_is_rewritten(said: bytes, heard: bytes) -> None:
    assert headers._located(said, Place(lease=1, port=8000)) == heard


async def test_sockets_pass_and_end_with_the_lease(site: Site) -> None:
    await site.enter(site.lease.owner)
    cookie = {"cookie": site.http.headers["cookie"]}

    def opened(**changed: Any) -> Any:
        asked = {"origin": site.origin, "additional_headers": cookie, **changed}
        return connect(
            f"ws://{site.host}/socket", host="127.0.0.1", port=site.listens, proxy=None,
            subprotocols=["chat"], compression=None, max_size=None, **asked,
        )  # fmt: skip

    for wrong in ({"origin": "http://127.0.0.1"}, {"origin": None}, {"additional_headers": {}}):
        with pytest.raises(InvalidStatus):
            async with opened(**wrong):
                pass
    async with opened() as socket:
        assert socket.subprotocol == "chat"
        await socket.send("grüße")
        assert await socket.recv() == "grüße"
        await socket.send(bytes(range(256)) * 1000)
        assert await socket.recv() == bytes(range(256)) * 1000
        async with site.http.stream("GET", "/endless") as endless:
            pieces = endless.aiter_raw()
            assert b"tick" in await anext(pieces)
            await in_thread(leases.release)(site.lease, reason="done")
            with pytest.raises(httpx.HTTPError):
                async for _ in pieces:
                    pass
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(socket.recv(), 60)
    assert (await site.http.get("/heard")).status_code == 403


async def test_a_service_on_another_host_is_reached_through_its_gateway(
    site: Site, tmp_path: Path, settings: Any
) -> None:
    settings.SANDBOX_TLS = await in_thread(certify)(tmp_path / "tls")
    client_context(settings.SANDBOX_TLS)
    running = gateway(settings.SANDBOX_TLS)
    await in_thread(running.__enter__)()
    try:
        sandbox = site.lease.sandbox
        await in_thread(type(sandbox).objects.update)(host=HOST)
        await site.enter(site.lease.owner)
        assert (await site.http.get("/heard")).headers["x-own"] == "kept"
        closed = Site(site.listens, site.lease, 1)
        async with closed.http:
            await closed.enter(site.lease.owner)
            assert "port 1" in (await closed.http.get("/")).text
    finally:
        await in_thread(running.__exit__)(None, None, None)


def test_who_may_ask_for_a_ticket(
    tmp_path: Path, annotator: Any, reviewer: Any, stranger: Any, settings: Any
) -> None:
    lease = leased(annotator, tmp_path / "none", host="here")
    path = f"/sandbox/leases/{lease.pk}/ports/8080/open"

    def asks(user: Any, **extra: Any) -> Any:
        client = Client(headers={"host": "localhost:8000"})
        if user is not None:
            client.force_login(user)
        return client.post(path, **extra)

    assert [asks(user).status_code for user in (None, stranger, reviewer)] == [401, 404, 403]
    given = asks(annotator).json()
    host = given["url"].removeprefix("http://").removesuffix(ENTER)
    assert place_of(host) == Place(lease.pk, 8080)
    assert given["ticket"] not in str(list(StreamTicket.objects.values()))
    settings.PREVIEW_HOST = ""
    assert "PREVIEW_HOST" in asks(annotator).json()["error"]
    assert not is_preview(host)


def test_names_that_nobody_gave_out_lead_nowhere(settings: Any) -> None:
    settings.PREVIEW_HOST = "localhost"
    good = origin_of(Place(7, 80), scheme="http", product="127.0.0.1:8000").removeprefix("http://")
    assert place_of(good) == place_of(good.upper()) == Place(7, 80)
    for bad in ("p80-7-0000000000000000.localhost", good.replace("p80", "p81"), f"x.{good}"):
        assert is_preview(bad) and place_of(bad) is None
    assert not is_preview("localhost:8000") and not is_preview("127.0.0.1:8000")
    with pytest.raises(names.PreviewsOff):
        origin_of(Place(7, 80), scheme="http", product="10.0.0.5:8000")


def test_headers_named_by_connection_stay_behind() -> None:
    asked = [(b"Connection", b"close, X-Secret"), (b"x-secret", b"1"), (b"x-open", b"2")]
    assert headers.to_service(asked, Place(1, 80)) == [
        (b"host", b"localhost:80"),
        (b"x-open", b"2"),
    ]
