"""A policy behind an OpenAI-compatible endpoint: our own server, vLLM, SGLang, OpenAI."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import httpx

from agent.dialects import Dialect, ParseError, frame_of
from agent.policy import (
    Candidate,
    PolicyBusy,
    PolicyRefused,
    PolicyRequest,
    PolicyUnreachable,
    distinct,
    varied,
)
from agent.render import Message, ObservationKind, render
from trajectory import Sample

ATTEMPTS = 4
BACKOFF_S = 0.25
BUSY = (429, 502, 503)


@lru_cache(maxsize=4)
def _client(timeout_s: float) -> httpx.Client:
    """Return this process's client: making one takes 30 ms, which an annotator would wait for."""
    return httpx.Client(timeout=timeout_s)


@dataclass(frozen=True, slots=True)
class OpenAIPolicy:
    """Asks `url`/v1/chat/completions for k answers and reads them in one dialect.

    `ours` asks for what only our own server has: token ids, log-probs, and for k > 1 the likeliest
    answer and its alternatives instead of samples. `sampled` wants samples from it too, as the
    episodes need that a policy is trained on.
    """

    url: str
    model: str
    dialect: Dialect
    observation_kind: ObservationKind
    pictures: Callable[[str], bytes]
    token: str = ""
    history_n: int = 5
    temperature: float = 0.7
    max_tokens: int = 256
    top_p: float = 1.0
    ours: bool = False
    sampled: bool = False
    timeout_s: float = 45.0

    def propose(self, request: PolicyRequest, k: int) -> list[Candidate]:
        """Return 1 to `k` distinct candidates in the endpoint's order.

        Endpoints that answer with one choice whatever `n` says are asked again for the rest.
        Raises PolicyUnreachable, PolicyBusy (after ATTEMPTS), PolicyRefused.
        """
        messages = render(
            request.instruction,
            request.history,
            request.observation,
            dialect=self.dialect,
            observation_kind=self.observation_kind,
            history_n=self.history_n,
            summary=request.summary,
            hint=request.hint,
        )
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [self._with_pictures(message) for message in messages],
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
        }
        if self.top_p < 1:  # some endpoints refuse it beside a temperature
            body["top_p"] = self.top_p
        if request.seed is not None:
            body["seed"] = request.seed
        client = _client(self.timeout_s)
        if self.ours:
            body |= {"greedy_first": not self.sampled, "return_token_ids": True}
            if (
                k > 1 and not self.sampled
            ):  # more than wanted: some only put the same action in other words
                body |= {"alternatives": True, "n": 2 * k - 1}
                return varied(self._read(self._ask(client, body), request), k)
        candidates: list[Candidate] = []
        for _ in range(k):
            body["n"] = k - len(candidates)
            candidates += self._read(self._ask(client, body), request)
            if len(candidates) >= k:
                break
        return distinct(candidates)[:k]

    def _ask(self, client: httpx.Client, body: Mapping[str, Any]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        address = f"{self.url.rstrip('/').removesuffix('/v1')}/v1/chat/completions"
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
                raise PolicyUnreachable(
                    f"{address} did not answer in {self.timeout_s:g} s"
                ) from error
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

    def _read(self, answer: dict[str, Any], request: PolicyRequest) -> list[Candidate]:
        choices = answer.get("choices")
        if not isinstance(choices, list) or not choices:
            raise PolicyRefused(f"{self.url} answered without choices")
        version = str(answer.get("model") or self.model)
        candidates = []
        for index, choice in enumerate(choices):
            raw = str((choice.get("message") or {}).get("content") or "")
            sample = _sample(answer.get("tandem"), index, version)
            try:
                parsed = self.dialect.parse(raw, frame_of(request.observation))
            except ParseError as error:
                candidates.append(Candidate("", None, raw, str(error), sample, version))
                continue
            candidates.append(
                Candidate(parsed.thought, parsed.action, raw, "", sample, version, more=parsed.more)
            )
        return candidates

    def _with_pictures(self, message: Message) -> Message:
        content = message["content"]
        if isinstance(content, str):
            return message
        return {**message, "content": [self._part(part) for part in content]}

    def _part(self, part: Message) -> Message:
        if part["type"] != "image":
            return part
        data = base64.b64encode(self.pictures(part["sha256"])).decode()
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


def _record(response: httpx.Response, address: str) -> dict[str, Any]:
    if response.status_code >= 500:
        raise PolicyUnreachable(f"{address}: {response.status_code} {_message(response)}")
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


def _sample(record: object, index: int, version: str) -> Sample | None:
    if not isinstance(record, Mapping) or "output_ids" not in record:
        return None
    return Sample(
        prompt_ids=tuple(record["prompt_ids"]),
        output_ids=tuple(record["output_ids"][index]),
        output_logprobs=tuple(record["logprobs"][index]),
        version=str(record.get("version") or version),
    )
