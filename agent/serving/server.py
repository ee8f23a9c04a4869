"""The HTTP face of the engine, in OpenAI's shape.

`POST /v1/chat/completions` takes messages, n, max_tokens, temperature, top_p, seed, stop, logprobs
and, of our own, return_token_ids, greedy_first and alternatives (see `agent.serving.generate`).
Pictures come as data URLs only. Every answer's `model` is the version that gave it.
`POST /tokenize` takes messages and returns {"count", "max_model_len", "tokens"} as vLLM does,
pictures counted in full. `POST /v1/load` replaces the model. `GET /health` says what is served and
how busy it is (`agent.serving.scheduler.Load`), `GET /metrics` the latter for Prometheus.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import dataclasses
import hmac
import io
import json
import time
import uuid
from collections.abc import Mapping
from typing import Any

from PIL import Image
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from agent.serving.engine import Busy, Engine, NotReady
from agent.serving.generate import Sampled, Sampling
from agent.serving.manifest import CheckpointError
from agent.serving.processor import PromptError
from agent.serving.scheduler import Answer

MAX_N = 16
MAX_BODY = 64 * 1024 * 1024


class BadRequest(ValueError):
    """A request can't be understood; `param` names the field."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


def create_app(engine: Engine, token: str = "") -> Starlette:
    """Return the application; without a `token` everyone who reaches the port is let in."""

    async def completions(request: Request) -> JSONResponse:
        body = await _body(request, token)
        sampling, stop = _sampling(body), _stop(body)
        messages = _messages(body)
        future = engine.submit(messages, sampling, picture=_picture, stop=stop)
        return JSONResponse(_completion(await asyncio.wrap_future(future), body))

    async def tokenize(request: Request) -> JSONResponse:
        body = await _body(request, token)
        served = engine.served()
        messages = _messages(body)
        ids = await asyncio.to_thread(served.processor.count, messages, _picture_file)
        limit = served.decoder.limit
        return JSONResponse({"count": len(ids), "max_model_len": limit, "tokens": ids})

    async def load(request: Request) -> JSONResponse:
        body = await _body(request, token)
        checkpoint, version = body.get("checkpoint"), body.get("version")
        if not isinstance(checkpoint, str) or not checkpoint:
            raise BadRequest("checkpoint must be a URI", "checkpoint")
        if not isinstance(version, str) or not version:
            raise BadRequest("version must be a text", "version")
        # Shielded: a client that gives up does not stop a load that others wait for.
        await asyncio.shield(asyncio.wrap_future(engine.load(checkpoint, version)))
        return JSONResponse(_health(engine))

    async def models(request: Request) -> JSONResponse:
        _authorise(request, token)
        version = engine.current.version if engine.current else None
        data = [{"id": version, "object": "model", "owned_by": "tandem"}] if version else []
        return JSONResponse({"object": "list", "data": data})

    async def health(request: Request) -> JSONResponse:
        return JSONResponse(_health(engine), 200 if engine.current else 503)

    async def metrics(request: Request) -> PlainTextResponse:
        numbers = dataclasses.asdict(engine.busyness())
        return PlainTextResponse("".join(f"tandem_{name} {n}\n" for name, n in numbers.items()))

    return Starlette(
        routes=[
            Route("/v1/chat/completions", completions, methods=["POST"]),
            Route("/tokenize", tokenize, methods=["POST"]),
            Route("/v1/load", load, methods=["POST"]),
            Route("/v1/models", models),
            Route("/health", health),
            Route("/metrics", metrics),
        ],
        exception_handlers={
            BadRequest: _error(400, "invalid_request_error"),
            PromptError: _error(400, "invalid_request_error"),
            PermissionError: _error(401, "authentication_error"),
            CheckpointError: _error(422, "checkpoint_error"),
            Busy: _error(429, "rate_limit_error"),
            NotReady: _error(503, "not_ready"),
            Exception: _error(500, "server_error"),
        },
    )


def _messages(body: Mapping[str, Any]) -> list[Any]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages must be a list", "messages")
    if not all(isinstance(message, dict) for message in messages):
        raise BadRequest("each of the messages must be an object", "messages")
    return messages


def _health(engine: Engine) -> dict[str, Any]:
    served = engine.current
    state = "ok" if served else "loading" if engine.loading else "failed"
    record: dict[str, Any] = {
        "status": state,
        "loading": engine.loading,
        "error": engine.error,
        **dataclasses.asdict(engine.busyness()),
        "version": served.version if served else "",
    }
    if served:
        record |= {
            "checkpoint": served.checkpoint,
            "dialect": served.manifest.dialect,
            "observation": served.manifest.observation,
            "coordinates": served.manifest.coordinates,
        }
    return record


def _completion(answer: Answer, body: Mapping[str, Any]) -> dict[str, Any]:
    produced = sum(len(sample.ids) for sample in answer.samples)
    tandem: dict[str, Any] = {"version": answer.version}
    if body.get("return_token_ids"):
        tandem |= {
            "prompt_ids": answer.prompt_ids,
            "output_ids": [sample.ids for sample in answer.samples],
            "logprobs": [sample.logprobs for sample in answer.samples],
        }
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": answer.version,
        "choices": [
            {
                "index": index,
                "message": {"role": "assistant", "content": text},
                "finish_reason": sample.finish,
                "logprobs": _logprobs(answer, sample) if body.get("logprobs") else None,
            }
            for index, (sample, text) in enumerate(zip(answer.samples, answer.texts, strict=True))
        ],
        "usage": {
            "prompt_tokens": len(answer.prompt_ids),
            "completion_tokens": produced,
            "total_tokens": len(answer.prompt_ids) + produced,
        },
        "tandem": tandem,
    }


def _logprobs(answer: Answer, sample: Sampled) -> dict[str, Any]:
    tokenizer = answer.processor.tokenizer
    return {
        "content": [
            {
                "token": tokenizer.decode([token], skip_special_tokens=False),
                "logprob": logprob,
                "bytes": None,
                "top_logprobs": [],
            }
            for token, logprob in zip(sample.ids, sample.logprobs, strict=True)
        ]
    }


def _sampling(body: Mapping[str, Any]) -> Sampling:
    if body.get("stream"):
        raise BadRequest("this server does not stream", "stream")
    limit = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
    seed = body.get("seed")
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool)):
        raise BadRequest("seed must be an integer", "seed")
    return Sampling(
        n=int(_number(body, "n", 1, 1, MAX_N)),
        max_tokens=int(_number(body, limit, 256, 1, 32_768)),
        temperature=_number(body, "temperature", 1.0, 0, 2),
        top_p=_number(body, "top_p", 1.0, 1e-6, 1),
        seed=None if seed is None else seed % 2**63,
        greedy_first=body.get("greedy_first") is True,
        alternatives=body.get("alternatives") is True,
    )


def _number(body: Mapping[str, Any], name: str, default: float, least: float, most: float) -> float:
    value = body.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise BadRequest(f"{name} must be a number from {least:g} to {most:g}", name)
    return value


def _stop(body: Mapping[str, Any]) -> list[str]:
    stop = body.get("stop") or []
    stop = [stop] if isinstance(stop, str) else stop
    if not isinstance(stop, list) or not all(isinstance(s, str) and s for s in stop):
        raise BadRequest("stop must be a text or a list of texts", "stop")
    return stop


def _picture(part: Mapping[str, Any]) -> Image.Image:
    picture = _picture_file(part)
    try:
        return picture.convert("RGB")
    except (OSError, Image.DecompressionBombError) as error:
        raise PromptError(f"a picture can't be read: {error}") from error


def _picture_file(part: Mapping[str, Any]) -> Image.Image:
    """Return a picture whose pixels are not read yet: enough for its size."""
    url = part.get("image_url")
    url = url.get("url") if isinstance(url, Mapping) else url
    if not isinstance(url, str) or not url.startswith("data:image/") or ";base64," not in url:
        raise PromptError("a picture must be a data:image/...;base64 URL")
    try:
        data = base64.b64decode(url.split(",", 1)[1], validate=True)
        return Image.open(io.BytesIO(data))
    except (binascii.Error, OSError, Image.DecompressionBombError) as error:
        raise PromptError(f"a picture can't be read: {error}") from error


async def _body(request: Request, token: str) -> dict[str, Any]:
    _authorise(request, token)
    data = bytearray()
    async for piece in request.stream():  # its length need not be stated, nor be true
        data += piece
        if len(data) > MAX_BODY:
            raise BadRequest(f"the body is larger than {MAX_BODY} bytes")
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequest("the body must be a JSON object")
    return body


def _authorise(request: Request, token: str) -> None:
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    if token and not hmac.compare_digest(given.encode(), token.encode()):
        raise PermissionError("the bearer token is missing or wrong")


def _error(status: int, kind: str) -> Any:
    async def respond(request: Request, error: Exception) -> JSONResponse:
        body = {
            "message": str(error) or type(error).__name__,
            "type": kind,
            "param": getattr(error, "param", None),
            "code": None,
        }
        headers = {"Retry-After": "1"} if status in (429, 503) else None
        return JSONResponse({"error": body}, status, headers)

    return respond
