"""The recorder for those who have no checkout: its wheels, and a page with the line that installs it.

Wheels and requirements are for everybody, as pip sends no cookie: they hold what is published anyway.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_safe

NAMED = {"tandem-trajectory": "tandem_trajectory-", "tandem-recorder[redact]": "tandem_recorder-"}


@login_required
@require_GET
def page(request: HttpRequest) -> HttpResponse:
    """Say how to install the recorder from this server."""
    values = {
        "built": len(_wheels()) == len(NAMED),
        "requirements": request.build_absolute_uri(reverse("recorder-requirements")),
        "server": request.build_absolute_uri("/").rstrip("/"),
    }
    return render(request, "recordings/recorder.html", values)


@require_safe
def requirements(request: HttpRequest) -> HttpResponse:
    """Name the wheels by address and sha256: no package of the same name elsewhere can take their place."""
    lines = []
    for name, wheel in _wheels().items():
        address = request.build_absolute_uri(reverse("recorder-wheel", args=[wheel.name]))
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        lines.append(f"{name} @ {address}#sha256={digest}\n")
    if len(lines) < len(NAMED):
        raise Http404("the wheels are not built here: make install")
    return _fresh(HttpResponse("".join(lines), content_type="text/plain; charset=utf-8"))


@require_safe
def wheel(request: HttpRequest, name: str) -> HttpResponse | FileResponse:
    """Send one of the wheels; any other name is not found, whatever it points at."""
    found = next((path for path in _wheels().values() if path.name == name), None)
    if found is None:
        raise Http404("there is no such wheel")
    answer = FileResponse(
        found.open("rb"), content_type="application/octet-stream", filename=found.name
    )
    return _fresh(answer)


def _wheels() -> dict[str, Path]:
    """Return the wheels that are there by what pip is to install."""
    folder = Path(settings.RECORDER_WHEELS)
    found = {name: sorted(folder.glob(f"{prefix}*.whl")) for name, prefix in NAMED.items()}
    return {name: paths[-1] for name, paths in found.items() if paths}


def _fresh(answer: HttpResponse | FileResponse) -> HttpResponse | FileResponse:
    """A wheel keeps its name when its bytes change: nobody may keep the old ones."""
    answer["Cache-Control"] = "no-store"
    return answer
