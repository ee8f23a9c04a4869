"""Requests to one Tandem server, with the token of this computer."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import httpx

TIMEOUT_S = 30.0
_MESSAGE = 500


class ServerError(Exception):
    """A server could not be reached, or said no; the message is for people.

    `code` is the server's word for it, "" where it has none; `status` is 0 where nothing answered;
    `retry_after_s` is how long it asks to wait.
    """

    def __init__(
        self, message: str, *, code: str = "", status: int = 0, retry_after_s: float = 0.0
    ) -> None:
        super().__init__(message)
        self.code, self.status, self.retry_after_s = code, status, retry_after_s


class Client:
    """Speaks to the server at `address`, such as "https://tandem.example.org"."""

    def __init__(self, address: str, token: str = "") -> None:
        self.address = checked(address)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(base_url=self.address, headers=headers, timeout=TIMEOUT_S)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send JSON, return the JSON of the answer, None for an empty one; raises ServerError."""
        answer = self.send(method, path, json=body) if body is not None else self.send(method, path)
        if not answer.content:
            return None
        try:
            return answer.json()
        except ValueError:
            raise ServerError(
                f"{self.address} answers {path} with no JSON: is it Tandem?"
            ) from None

    def send(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Return an answer of success; raises ServerError for any other and for none."""
        try:
            answer = self._http.request(method, path, **request)
        except httpx.HTTPError as error:
            raise ServerError(f"{self.address} can't be reached: {error!r}") from None
        if answer.is_success:
            return answer
        raise refused(answer)

    def close(self) -> None:
        self._http.close()


def refused(answer: httpx.Response) -> ServerError:
    """Return what an answer that is no success says."""
    code, message = "", ""
    try:
        said = answer.json()
        code, message = str(said["error"])[:60], str(said.get("message", ""))[:_MESSAGE]
    except (ValueError, KeyError, TypeError, AttributeError):
        pass  # from a proxy, say
    if answer.status_code == 401 and not message:
        message = "this computer is not signed in any more: `tandem-recorder login`"
    message = message or f"{answer.request.url.path} was answered with {answer.status_code} {code}"
    wait = answer.headers.get("Retry-After", "")
    return ServerError(
        message,
        code=code,
        status=answer.status_code,
        retry_after_s=float(wait) if wait.isdigit() else 0.0,
    )


def checked(address: str) -> str:
    """Return a server's address without its path; raises ServerError for one that tells secrets to all."""
    try:
        parts = urlsplit(address if "//" in address else f"https://{address}")
        wrong = parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0
    except ValueError:  # a port or a bracket that is none
        raise ServerError(f"{address!r} is no address of a server") from None
    local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if wrong:
        raise ServerError(f"{address!r} is no address of a server")
    if parts.scheme == "http" and not local:
        raise ServerError(f"{address} is not encrypted; use https")
    return f"{parts.scheme}://{parts.netloc}"
