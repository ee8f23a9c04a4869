"""A contributor's own pages: everything that one has given, and what one may do with it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from annotation import access
from annotation.errors import Refused
from annotation.models import Recording, RecordingFile
from annotation.recordings import asked, progress, retention, reviewing, rights
from annotation.recordings.retention import Retention
from annotation.session import pictures
from annotation.views import recordings_steps as steps
from annotation.views.answers import conflict
from blobs import BlobError, blob_key

ZIP_IN_MEMORY = 8 << 20


@login_required
@require_GET
def recordings(request: HttpRequest) -> HttpResponse:
    """List what one has given, with its state and what it was used for."""
    rows = (
        Recording.objects.filter(owner=request.user)
        .select_related("consent", "task", "session")
        .annotate(
            datasets=Count("session__dataset_entries__dataset", distinct=True),
        )
    )
    consent = asked.consent()
    kept: dict[int, Retention] = {}
    for row in rows:
        if row.consent_id not in kept:
            kept[row.consent_id] = retention.under(row.consent)
        row.ends = kept[row.consent_id].ends(row)
    values = {
        "recordings": rows,
        "consent": consent,
        "kept": retention.under(consent).sentences(),
        "reviewer": access.is_reviewer(request.user),
        "waiting": access.recordings_to_judge(request.user).count(),
    }
    return render(request, "recordings/recordings.html", values)


@login_required
@require_GET
def recording(request: HttpRequest, name: str) -> HttpResponse:
    row = access.recording_of(request.user, name)
    values = {"recording": row, "used": _uses(row), **steps.shown(row)}
    values["ends"] = retention.under(row.consent).ends(row)
    values["editable"] = row.status == Recording.Status.RETURNED
    page = render(request, "recordings/recording.html", values)
    if "HX-Request" in request.headers and row.status not in Recording.WORKING:
        page["HX-Refresh"] = "true"  # what its scripts work on has come: load all of it
    return page


def _uses(row: Recording) -> list[tuple[Any, list[str]]]:
    """Return the datasets that hold it, each with the models that learnt from that dataset."""
    if row.session is None:
        return []
    found = {one.dataset for one in row.session.dataset_entries.select_related("dataset")}
    return [(one, _learnt(one)) for one in sorted(found, key=lambda one: one.pk)]


def _learnt(dataset: Any) -> list[str]:
    runs = {*dataset.runs.all(), *(one.run for one in dataset.mixed_into.select_related("run"))}
    return sorted({made.version for run in runs for made in run.checkpoints.all()})


@login_required
@require_GET
def download(request: HttpRequest, name: str) -> HttpResponse | StreamingHttpResponse:
    """Send everything as one zip, streamed from a file."""
    row = access.recording_of(request.user, name)
    file = tempfile.SpooledTemporaryFile(max_size=ZIP_IN_MEMORY)  # noqa: SIM115
    try:
        rights.write_zip(row, file)
    except Refused as error:
        file.close()
        return conflict(request, error)
    answer = StreamingHttpResponse(rights.blocks(file), content_type="application/zip")
    answer["Content-Disposition"] = f'attachment; filename="recording-{row.name[:8]}.zip"'
    return answer


@login_required
@require_GET
def sound(request: HttpRequest, name: str, sha: str) -> HttpResponse | StreamingHttpResponse:
    """Play one sound of a recording, for its contributor and its reviewers."""
    row = access.recording_for(request.user, name)
    files = RecordingFile.objects.filter(recording=row, sha256=sha, path__startswith="audio/")
    if not files.filter(stored=True).exists():
        raise access.Denied("no such sound")
    file = tempfile.NamedTemporaryFile()  # noqa: SIM115
    pictures.store().fetch(blob_key(sha), Path(file.name))
    answer = StreamingHttpResponse(rights.blocks(file), content_type="audio/flac")
    answer["Cache-Control"] = "private, no-store"
    return answer


@login_required
@require_POST
def withdraw(request: HttpRequest, name: str) -> HttpResponse:
    row = access.recording_of(request.user, name)
    try:
        row, told = rights.withdraw(row), "It is deleted."
    except BlobError:  # what is left is written down, and goes with the next sweep
        told = "It is withdrawn. Its files are deleted as soon as the store answers again."
    if row.session_id:
        told += " What learnt from it is marked within a minute."
    messages.success(request, told)
    return redirect("recordings")


@login_required
@require_POST
def retry(request: HttpRequest, name: str) -> HttpResponse:
    if not progress.retry(access.recording_of(request.user, name)):
        messages.error(request, "It has not failed.")
    return redirect("recording", name=name)


@login_required
@require_POST
def thoughts(request: HttpRequest, name: str) -> HttpResponse:
    """Send a returned recording again with what its contributor corrected."""
    row = access.recording_of(request.user, name)
    try:
        reviewing.send_again(row, by=request.user, fixes=steps.corrections(request.POST, row).fixes)
    except Refused as error:
        return conflict(request, error)
    messages.success(request, "Sent to the reviewers again.")
    return redirect("recording", name=name)
