"""How verbs answer the workbench: JSON in, JSON out, and one status per kind of refusal."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from annotation import access, storable
from annotation.errors import BadInput, MissingThoughts, Refused
from annotation.hand.commands import CommandError

Body = dict[str, Any]
Verb = Callable[..., Body]


def json_verb(verb: Verb) -> Callable[..., HttpResponse]:
    """Serve `verb(request, body, session_id)` for signed-in POSTs.

    400 names a field that can't be read, 409 says why the verb was refused, 404 hides what is
    not the caller's.
    """

    @wraps(verb)
    def view(request: HttpRequest, session_id: int) -> HttpResponse:
        if not request.user.is_authenticated:
            return refusal(401, "SignedOut", "You are signed out. Sign in again in another tab.")
        try:
            return JsonResponse({"ok": True, **verb(request, read_body(request), session_id)})
        except access.Denied as error:
            return refusal(404, "Denied", str(error))
        except (BadInput, CommandError) as error:
            return refusal(400, type(error).__name__, str(error))
        except MissingThoughts as error:
            numbers = ", ".join(str(index + 1) for index in error.steps)  # people count from 1
            message = f"Say why first: step {numbers} was done by hand and has no thought."
            return refusal(409, "MissingThoughts", message, steps=error.steps)
        except Refused as error:
            return refusal(409, type(error).__name__, str(error))

    return require_POST(view)


def refusal(status: int, error: str, message: str, **more: object) -> JsonResponse:
    """Answer with the error's name for the page and its message for the person."""
    return JsonResponse({"ok": False, "error": error, "message": message, **more}, status=status)


def read_body(request: HttpRequest) -> Body:
    """Return the JSON object that was posted; raises BadInput."""
    try:
        body = json.loads(request.body or b"{}")
    except (ValueError, RecursionError) as error:
        raise BadInput(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadInput("the body must be a JSON object")
    if why := storable.wrong(body):
        raise BadInput(f"what you typed can't be kept: {why}")
    return body


def integer(body: Body, name: str, default: int | None = None) -> int:
    """Return a whole number of the body that is not negative; raises BadInput naming it."""
    value = body.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise BadInput(f"{name} must be a whole number, below 2147483648")
    return value


def text(body: Body, name: str, limit: int = 20_000) -> str:
    """Return a text of the body, "" if it is missing; raises BadInput naming it."""
    value = body.get(name, "")
    if not isinstance(value, str):
        raise BadInput(f"{name} must be text")
    if len(value) > limit:
        raise BadInput(f"{name} is longer than {limit} characters")
    return value.strip()


def members(test: Callable[[Any], bool]) -> Callable[[Callable[..., HttpResponse]], Any]:
    """Let only signed-in people pass for whom `test(user)` holds; others get the 403 page."""

    def decorate(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @wraps(view)
        @login_required
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if not test(request.user):
                return render(request, "403.html", status=403)
            return view(request, *args, **kwargs)

        return guarded

    return decorate


def conflict(request: HttpRequest, error: Refused) -> HttpResponse:
    """Show a refusal of a plain form as a page."""
    status = 400 if isinstance(error, BadInput) else 409
    return render(request, f"{status}.html", {"reason": str(error)}, status=status)
