"""What passes between a browser and a service: neither learns the other's secrets."""

from __future__ import annotations

import re

from sandbox.preview.names import Place

Headers = list[tuple[bytes, bytes]]

_HOP = {
    *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te"),
    *(b"trailer", b"transfer-encoding", b"upgrade", b"proxy-connection", b"expect"),
}
# A service gets no cookie at all: ours is the browser's key to it. It hears of nobody's address.
_NOT_TO_SERVICE = {*_HOP, b"host", b"cookie", b"origin", b"referer", b"forwarded", b"via"}
# A service speaks for its own pages only: not for the whole host, and to no other origin.
_NOT_TO_BROWSER = {
    *_HOP,
    *(b"set-cookie", b"set-cookie2", b"clear-site-data", b"strict-transport-security", b"alt-svc"),
    *(b"cache-control", b"expires", b"x-frame-options", b"cross-origin-opener-policy"),
    *(b"cross-origin-resource-policy", b"referrer-policy", b"service-worker-allowed", b"nel"),
    *(
        b"report-to",
        b"reporting-endpoints",
        b"x-content-type-options",
        b"refresh",
        b"public-key-pins",
    ),
}
SANDBOX = (
    b"sandbox allow-scripts allow-same-origin allow-forms allow-modals allow-downloads allow-popups; "
    b"frame-ancestors 'none'; worker-src 'self' blob:"
)
OURS: Headers = [
    (b"content-security-policy", SANDBOX),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cache-control", b"no-store"),
]
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def one(headers: Headers, name: bytes) -> str:
    """Return the only header of that name; "" if there is none or more than one."""
    found = [value for key, value in headers if key.lower() == name]
    return found[0].decode("latin-1") if len(found) == 1 else ""


def cookie(headers: Headers, name: str) -> str:
    """Return a cookie of a request; "" if there is none."""
    for key, value in headers:
        if key.lower() == b"cookie":
            for part in value.decode("latin-1").split(";"):
                found, _, text = part.strip().partition("=")
                if found == name:
                    return text
    return ""


def foreign(headers: Headers, *, own: str, method: str) -> str:
    """Say why a request came from a page of another origin; "" if it did not.

    `own` is this service's origin. A link from elsewhere may open a page, and nothing more.
    """
    origin = [value for key, value in headers if key.lower() == b"origin"]
    if origin and origin != [own.encode()]:
        return "the request comes from a page of another origin"
    if one(headers, b"sec-fetch-site") in ("cross-site", "same-site"):
        opens = one(headers, b"sec-fetch-mode") == "navigate" and method in ("GET", "HEAD")
        if not opens or one(headers, b"sec-fetch-dest") != "document":
            return "the request comes from a page of another site"
    if one(headers, b"service-worker"):
        return "a service of a computer may not leave a service worker behind"
    return ""


def to_service(headers: Headers, place: Place) -> Headers:
    """Return what a service hears of a request: as if it came from a browser beside it."""
    local = f"localhost:{place.port}".encode()
    named = _named_by_connection(headers)
    passed = [
        (key, value)
        for key, value in headers
        if (low := key.lower()) not in _NOT_TO_SERVICE
        and low not in named
        and not low.startswith((b"x-forwarded", b"x-real-ip", b"sec-websocket-"))
    ]
    if any(key.lower() == b"origin" for key, _ in headers):
        passed.append((b"origin", b"http://" + local))
    return [(b"host", local), *passed]


def to_browser(headers: Headers, place: Place) -> Headers:
    """Return what a browser hears of a service's answer, with our own rules put over it."""
    named = _named_by_connection(headers)
    passed = [
        (key, _located(value, place) if low == b"location" else value)
        for key, value in headers
        if (low := key.lower()) not in _NOT_TO_BROWSER
        and low not in named
        and not low.startswith(b"access-control-")
        and _TOKEN.fullmatch(key)
    ]
    return [*passed, *OURS]


def _located(value: bytes, place: Place) -> bytes:
    """Make an address of the computer's own loopback one of this origin."""
    own = rb"\Ahttps?://(localhost|127\.0\.0\.1|\[::1\]):%d(?=/|$)" % place.port
    return re.sub(own, b"", value) or b"/"


def _named_by_connection(headers: Headers) -> set[bytes]:
    return {
        name.strip().lower()
        for key, value in headers
        if key.lower() == b"connection"
        for name in value.split(b",")
    }
