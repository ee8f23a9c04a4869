"""One question to an OpenAI-compatible endpoint: pictures in, retries, errors by what broke."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import httpx

from agent.policy import PolicyBusy, PolicyRefused, PolicyUnreachable
from agent.render import Message

ATTEMPTS = 4
BACKOFF_S = 0.25
BUSY = (429, 502, 503)


class NoSuchPath(PolicyRefused):
    """The endpoint does not have what was asked for."""


def ask(url: str, body: Mapping[str, Any], *, token: str = "", timeout_s: float) -> dict[str, Any]:
    """Post `body` to `url`/v1/chat/completions and return the answer; raises what `post` raises."""
    return post(url, "/v1/chat/completions", body, token=token, timeout_s=timeout_s)


def post(
    url: str,
    path: str,
    body: Mapping[str, Any],
    *,
    token: str = "",
    headers: Mapping[str, str] | None = None,
    timeout_s: float,
) -> dict[str, Any]:
    """Post `body` to `path` of an endpoint (`url`, with or without /v1) and return the answer.

    `headers` stand for the usual bearer token where an API wants its key elsewhere.

    Raises PolicyUnreachable, PolicyBusy (after ATTEMPTS), PolicyRefused, NoSuchPath.
    """
    client = _client(timeout_s)
    if headers is None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
    address = f"{url.rstrip('/').removesuffix('/v1')}{path}"
    last = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(BACKOFF_S * 2**attempt)
        try:
            response = client.post(address, json=body, headers=headers)
        except httpx.ConnectError as error:
            last = f"{address} can't be reached: {error}"
            continue
        except httpx.TimeoutException as error:
            raise PolicyUnreachable(f"{address} did not answer in {timeout_s:g} s") from error
        except httpx.HTTPError as error:
            # The server went away in mid-answer; nothing was done yet, so asking again is safe.
            last = f"{address} broke off: {error}"
            continue
        if response.status_code in BUSY:
            last = f"{address}: {response.status_code} {_message(response)}"
            continue
        return _record(response, address)
    if " 429 " in last or " 503 " in last or " 502 " in last:
        raise PolicyBusy(last)
    raise PolicyUnreachable(last)


def with_pictures(message: Message, pictures: Callable[[str], bytes]) -> Message:
    """Return `message` with each picture as a data URL instead of a reference."""
    content = message["content"]
    if isinstance(content, str):
        return message
    return {**message, "content": [_part(part, pictures) for part in content]}


@lru_cache(maxsize=4)
def _client(timeout_s: float) -> httpx.Client:
    """Return this process's client: making one takes 30 ms, which an annotator would wait for."""
    return httpx.Client(timeout=timeout_s)


def _part(part: Message, pictures: Callable[[str], bytes]) -> Message:
    if part["type"] != "image":
        return part
    data = base64.b64encode(pictures(part["sha256"])).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


def _record(response: httpx.Response, address: str) -> dict[str, Any]:
    if response.status_code >= 500:
        raise PolicyUnreachable(f"{address}: {response.status_code} {_message(response)}")
    if response.status_code in (404, 405):
        raise NoSuchPath(f"{address}: {response.status_code} {_message(response)}")
    if response.status_code >= 400:
        raise PolicyRefused(f"{address}: {response.status_code} {_message(response)}")
    try:
        answer = response.json()
    except ValueError as error:
        raise PolicyRefused(f"{address} answered with something that is not JSON") from error
    if not isinstance(answer, dict):
        raise PolicyRefused(f"{address} answered with something that is not an object")
    return answer


def _message(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return response.text[:200]
