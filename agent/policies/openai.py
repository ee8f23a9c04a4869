"""A policy behind an OpenAI-compatible endpoint: our own server, vLLM, SGLang, OpenAI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent.dialects import Dialect, ParseError, frame_of
from agent.policies.endpoint import ask, with_pictures
from agent.policy import (
    Candidate,
    PolicyRefused,
    PolicyRequest,
    distinct,
    varied,
)
from agent.render import ObservationKind, render
from trajectory import Sample


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
            "messages": [with_pictures(message, self.pictures) for message in messages],
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
        }
        if self.top_p < 1:  # some endpoints refuse it beside a temperature
            body["top_p"] = self.top_p
        if request.seed is not None:
            body["seed"] = request.seed
        if self.ours:
            body |= {"greedy_first": not self.sampled, "return_token_ids": True}
            if (
                k > 1 and not self.sampled
            ):  # more than wanted: some only put the same action in other words
                body |= {"alternatives": True, "n": 2 * k - 1}
                return varied(self._read(self._ask(body), request), k)
        candidates: list[Candidate] = []
        for _ in range(k):
            body["n"] = k - len(candidates)
            candidates += self._read(self._ask(body), request)
            if len(candidates) >= k:
                break
        return distinct(candidates)[:k]

    def _ask(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return ask(self.url, body, token=self.token, timeout_s=self.timeout_s)

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


def _sample(record: object, index: int, version: str) -> Sample | None:
    if not isinstance(record, Mapping) or "output_ids" not in record:
        return None
    return Sample(
        prompt_ids=tuple(record["prompt_ids"]),
        output_ids=tuple(record["output_ids"][index]),
        output_logprobs=tuple(record["logprobs"][index]),
        version=str(record.get("version") or version),
    )
