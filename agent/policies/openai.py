"""A policy behind an OpenAI-compatible endpoint: our own server, vLLM, SGLang, OpenAI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agent.dialects import Dialect, ParseError, frame_of
from agent.policies import counting
from agent.policies.endpoint import ask, with_pictures
from agent.policy import Candidate, PolicyRefused, PolicyRequest, Size, distinct, varied
from agent.render import Message, ObservationKind, pictures_of, render_request
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
        messages = self.messages(request)
        pictures = len(pictures_of(messages))
        body: dict[str, Any] = {
            "model": self.model,
            "messages": self._opened(messages),
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
        }
        if self.top_p < 1:  # some endpoints refuse it beside a temperature
            body["top_p"] = self.top_p
        if request.seed is not None:
            body["seed"] = request.seed
        if self.ours:
            body |= {"greedy_first": not self.sampled, "return_token_ids": True}
            if k > 1 and not self.sampled:
                # More than wanted: some only put the same action in other words.
                body |= {"alternatives": True, "n": 2 * k - 1}
                return varied(self._read(self._ask(body), request, pictures), k)
        candidates: list[Candidate] = []
        for _ in range(k):
            body["n"] = k - len(candidates)
            candidates += self._read(self._ask(body), request, pictures)
            if len(candidates) >= k:
                break
        return distinct(candidates)[:k]

    def messages(self, request: PolicyRequest) -> list[Message]:
        """Return what is asked; pictures stay references."""
        return render_request(
            request,
            dialect=self.dialect,
            observation_kind=self.observation_kind,
            history_n=self.history_n,
        )

    def measure(self, request: PolicyRequest) -> Size:
        """Return how long the prompt is: exactly where the endpoint counts it, else from above.

        Our server counts all of it; vLLM's /tokenize counts a picture as one token
        (vllm-project/vllm#16191), so pictures are estimated there. Raises what `propose` raises.
        """
        messages = self.messages(request)
        pictures = len(pictures_of(messages))
        opened = self._opened(messages)
        counted = counting.asked(
            self.url, self.model, opened, token=self.token, timeout_s=self.timeout_s
        )
        tokens = counted or counting.estimate(messages)
        if pictures and not (self.ours and counted):
            tokens += pictures * counting.picture_tokens(request.observation)
            return Size(tokens, pictures, exact=False)
        return Size(tokens, pictures, exact=counted > 0)

    def chat(self, messages: list[Message], max_tokens: int) -> tuple[str, str]:
        """Return the likeliest answer to plain messages and the version that gave it.

        What `agent.memory.ByChat` asks with. Raises what `propose` raises.
        """
        body = {"model": self.model, "messages": messages, "max_tokens": max_tokens}
        answer = self._ask(body | {"temperature": 0})
        return _contents(answer, self.url)[0], str(answer.get("model") or self.model)

    def _ask(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return ask(self.url, body, token=self.token, timeout_s=self.timeout_s)

    def _opened(self, messages: list[Message]) -> list[Message]:
        return [with_pictures(message, self.pictures) for message in messages]

    def _read(
        self, answer: dict[str, Any], request: PolicyRequest, pictures: int
    ) -> list[Candidate]:
        version = str(answer.get("model") or self.model)
        prompt_tokens = int((answer.get("usage") or {}).get("prompt_tokens") or 0)
        candidates = []
        for index, raw in enumerate(_contents(answer, self.url)):
            sample = _sample(answer.get("tandem"), index, version)
            candidate = Candidate(
                "", None, raw, "", sample, version, pictures=pictures, prompt_tokens=prompt_tokens
            )
            try:
                parsed = self.dialect.parse(raw, frame_of(request.observation))
            except ParseError as error:
                candidates.append(replace(candidate, error=str(error)))
                continue
            candidates.append(
                replace(candidate, thought=parsed.thought, action=parsed.action, more=parsed.more)
            )
        return candidates


def _contents(answer: Mapping[str, Any], url: str) -> list[str]:
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices:
        raise PolicyRefused(f"{url} answered without choices")
    return [str((choice.get("message") or {}).get("content") or "") for choice in choices]


def _sample(record: object, index: int, version: str) -> Sample | None:
    if not isinstance(record, Mapping) or "output_ids" not in record:
        return None
    return Sample(
        prompt_ids=tuple(record["prompt_ids"]),
        output_ids=tuple(record["output_ids"][index]),
        output_logprobs=tuple(record["logprobs"][index]),
        version=str(record.get("version") or version),
    )
