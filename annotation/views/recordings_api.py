"""The recorder's API: JSON in and out, a bearer token, and one shape for every refusal."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation import access, storable
from annotation.contributing import dispatch
from annotation.models import Device, Recording
from annotation.recordings import asked, devices, manifest, retention, uploads
from annotation.recordings.errors import TooMuch, Wrong
from blobs import BlobError

Body = dict[str, Any]


def answers(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Answer refusals as {"error", "message"}; no cookie is read here, so none is checked."""

    @csrf_exempt
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except Wrong as error:
            return _refused(error)
        except RequestDataTooBig:
            return _said(413, "manifest_too_large", "the manifest is too long: record in parts")
        except access.Denied:
            return _said(404, "not_found", "there is no such recording of yours")
        except BlobError as error:
            answer = _said(503, "store_away", f"it can't be stored now, nothing is lost: {error}")
            answer["Retry-After"] = "30"
            return answer

    return guarded


def with_device(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Call `view(request, device, ...)` for a bearer token in force; 401 for everybody else."""

    @answers
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        device = devices.device_of(token.strip()) if kind.lower() == "bearer" and token else None
        if device is None:
            answer = _said(401, "signed_out", "sign in again: tandem-recorder login")
            answer["WWW-Authenticate"] = 'Bearer error="invalid_token"'
            return answer
        return view(request, device, *args, **kwargs)

    return guarded


@require_POST
@answers
def device_code(request: HttpRequest) -> HttpResponse:
    """Begin a sign-in (RFC 8628, 3.1)."""
    body = _body(request, checked=False)  # a name is cleaned, whatever is in it
    begun = devices.begin(
        device_name=str(body.get("device_name") or "recorder"),
        address=str(request.META.get("REMOTE_ADDR", "")),
    )
    page = request.build_absolute_uri(reverse("device"))
    shown = f"{begun.user_code[:4]}-{begun.user_code[4:]}"
    return JsonResponse(
        {
            "device_code": begun.device_code,
            "user_code": shown,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?code={shown}",
            "interval": begun.interval_s,
            "expires_in": begun.expires_in_s,
        }
    )


@require_POST
@answers
def device_token(request: HttpRequest) -> HttpResponse:
    """Give an approved recorder its token (RFC 8628, 3.4)."""
    token = devices.poll(str(_body(request).get("device_code") or ""))
    life = int(devices.TOKEN_LIFE.total_seconds())
    return JsonResponse({"access_token": token, "token_type": "Bearer", "expires_in": life})


@require_GET
@with_device
def consent(request: HttpRequest, device: Device) -> HttpResponse:
    """Give what has to be agreed to; how long things are kept stands at the end of the text too."""
    newest = asked.consent()
    kept = retention.under(newest)
    told = kept.sentences()
    return JsonResponse(
        {
            "version": newest.version,
            "text": "\n\n".join((newest.text, " ".join(told))),
            "retention": {
                "days": kept.days,
                "unaccepted_days": kept.unaccepted_days,
                "sentences": told,
            },
        }
    )


@require_GET
@with_device
def tasks(request: HttpRequest, device: Device) -> HttpResponse:
    return JsonResponse([_task(one) for one in asked.tasks(device.user)[:200]], safe=False)


@require_POST
@with_device
def next_task(request: HttpRequest, device: Device) -> HttpResponse:
    """Offer the task whose turn it is, of a `kind` where one is named; `another`: not the last one.

    404 where none is left for this person.
    """
    body = _body(request)
    kind, another = body.get("kind") or "", body.get("another") or False
    if kind not in ("", *Recording.Kind.values) or not isinstance(another, bool):
        raise Wrong("bad_field", "kind is demonstration or exploration, another is true or false")
    found = dispatch.take(device.user, kind=kind, another=another)
    if found is None:
        return _said(404, "no_task", "no task waits for you: record work of your own choice")
    return JsonResponse(_task(found))


@require_POST
@with_device
def announce(request: HttpRequest, device: Device) -> HttpResponse:
    """Take a manifest and say what has to come."""
    found = manifest.read(_body(request))
    recording, new = uploads.announce(found, owner=device.user)
    said = {
        "id": recording.name,
        "status": recording.status,
        "missing": uploads.missing(recording),
        "part_bytes": uploads.PART_BYTES,
    }
    return JsonResponse(said, status=201 if new else 200)


@require_http_methods(["HEAD", "PATCH"])
@with_device
def file(request: HttpRequest, device: Device, name: str, sha: str) -> HttpResponse:
    """Say how much of a file is here, or take its next bytes."""
    recording = access.recording_of(device.user, name)
    if request.method == "HEAD":
        answer = HttpResponse()
        answer["Upload-Offset"] = str(uploads.offset(recording, sha))
        return answer
    at = _number(request, "Upload-Offset")
    size = _number(request, "Content-Length")
    length = uploads.append(recording, sha, at=at, source=request, size=size)
    answer = HttpResponse(status=204)
    answer["Upload-Offset"] = str(length)
    return answer


@require_POST
@with_device
def complete(request: HttpRequest, device: Device, name: str) -> HttpResponse:
    recording = uploads.complete(access.recording_of(device.user, name))
    return JsonResponse(_status(recording), status=202)


@require_GET
@with_device
def status(request: HttpRequest, device: Device, name: str) -> HttpResponse:
    return JsonResponse(_status(access.recording_of(device.user, name)))


def _status(recording: Any) -> Body:
    return {
        "id": recording.name,
        "status": recording.status,
        "cause": recording.cause,
        "heard": recording.heard,
        "steps": recording.steps.count(),
        "utterances": recording.utterances.count(),
    }


def _task(task: Any) -> Body:
    return {
        "id": task.external_id,
        "title": task.domain or task.instruction[:80],
        "instruction": task.instruction,
        "kind": task.recorded_as,
    }


def _body(request: HttpRequest, *, checked: bool = True) -> Body:
    if request.content_type == "application/x-www-form-urlencoded":
        body: Any = dict(request.POST.items())  # what RFC 8628 says; ours sends JSON
    else:
        try:
            body = json.loads(request.body or b"{}")
        except (ValueError, RecursionError) as error:
            raise Wrong("not_json", f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise Wrong("not_json", "the body must be a JSON object")
    if checked and (why := storable.wrong(body)):
        raise Wrong("bad_text", f"the body can't be kept: {why}")
    return body


def _number(request: HttpRequest, header: str) -> int:
    value = request.headers.get(header) or ("0" if header == "Content-Length" else "")
    if not value.isascii() or not value.isdigit() or len(value) > 15:
        raise Wrong("bad_header", f"{header} must be a whole number")
    return int(value)


def _refused(error: Wrong) -> HttpResponse:
    answer = _said(error.status, error.code, str(error), **error.more)
    if isinstance(error, TooMuch):
        answer["Retry-After"] = str(error.retry_after_s)
    if "offset" in error.more:
        answer["Upload-Offset"] = str(error.more["offset"])
    return answer


def _said(status: int, code: str, message: str, **more: object) -> JsonResponse:
    return JsonResponse({"error": code, "message": message, **more}, status=status)
