"""HTTP to one guest. Nothing that a guest says is believed: size, shape and time are bounded here."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from http.cookiejar import DefaultCookiePolicy

import httpx

from sandbox import dial
from sandbox.desktop.answer import Answer, JsonObject, plain
from sandbox.provider import ActionFailed, DesktopLost, Handle, SandboxError, StaleLease

SLACK_S = 5.0
# A guest on this host answers in milliseconds; typing a page of text may take a second or two.
_USUAL_S = 20.0
_CONNECT_S = 2.0
_MAX_ANSWER = 48 * 1024 * 1024  # the biggest file that is read in one piece, and its JSON
_MAX_DETAIL = 2000


class Wire:
    """Asks one guest; safe to share between threads (httpx keeps a pool)."""

    def __init__(
        self, handle: Handle, cause: Callable[[], str], gateway: dial.Gateway | None = None
    ) -> None:
        """`cause` says why a guest that does not answer has ended, "" if nobody knows."""
        self.name = handle.name
        self._cause = cause
        self._http = httpx.Client(
            transport=dial.transport(handle.guest_socket, gateway),
            base_url="http://guest",
            trust_env=False,
            verify=False,
        )
        # A guest could fill them without end.
        self._http.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))

    def post(self, path: str, lasts_s: float = 0.0, /, **body: object) -> Answer:
        """Send JSON and return JSON; `lasts_s` is how long the guest may take about it."""
        return self.ask("POST", path, body, lasts_s=lasts_s)[0]

    def ask(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        *,
        payload: bytes = b"",
        lasts_s: float = 0.0,
    ) -> tuple[Answer, bytes]:
        """Return (JSON, bytes after it).

        Raises StaleLease, ActionFailed, DesktopLost (no answer, late, too big, not of the form).
        """
        text = b"" if body is None else json.dumps(body).encode()
        within_s = max(_USUAL_S, lasts_s + SLACK_S)
        try:
            status, header, rest = self._exchange(method, path, text, payload, within_s)
        except (httpx.HTTPError, ValueError, RuntimeError) as error:  # RuntimeError: it was closed
            why = self._cause() or f"does not answer {path}: {error!r}"
            raise DesktopLost(f"{self.name}: {why}") from error
        if status == 200:
            return Answer(self.name, header), rest
        raise _refusal(status, header)

    def close(self) -> None:
        self._http.close()

    def _exchange(
        self, method: str, path: str, text: bytes, payload: bytes, within_s: float
    ) -> tuple[int, JsonObject, bytes]:
        deadline = time.monotonic() + within_s
        content = bytearray()
        with self._http.stream(
            method,
            path,
            content=text + payload,
            headers={"X-Header-Length": str(len(text))},
            timeout=httpx.Timeout(within_s, connect=_CONNECT_S),
        ) as answer:
            for piece in answer.iter_raw():
                content += piece
                if len(content) > _MAX_ANSWER:
                    raise ValueError(f"more than {_MAX_ANSWER} bytes")
                if time.monotonic() > deadline:
                    raise ValueError(f"not all said within {within_s:g} s")
            length = int(answer.headers.get("X-Header-Length", len(content)))
            header = json.loads(content[: max(0, length)])
            if not isinstance(header, dict):
                raise ValueError("no JSON object")
            return answer.status_code, header, bytes(content[max(0, length) :])


def _refusal(status: int, answer: JsonObject) -> SandboxError:
    detail = plain(str(answer.get("detail", ""))[:_MAX_DETAIL])
    if answer.get("error") == "stale_lease":
        return StaleLease(detail)
    if status < 500:
        return ActionFailed(detail)
    return SandboxError(f"the guest failed: {detail}")
