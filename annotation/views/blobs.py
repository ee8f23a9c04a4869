"""Pictures by hash, for those who may see a session that refers to them."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from annotation import access
from annotation.session import pictures
from blobs.store import MissingBlob


@login_required
@require_GET
def picture(request: HttpRequest, sha: str) -> HttpResponse:
    """Serve one screenshot; a hash never changes its picture, so it is cached for ever."""
    try:
        response = HttpResponse(pictures.read(access.blob_for(request.user, sha)))
    except MissingBlob as gone:  # erased, or lost
        raise Http404(str(gone)) from gone
    response["Content-Type"] = "image/png"
    response["Cache-Control"] = "private, max-age=31536000, immutable"
    return response
