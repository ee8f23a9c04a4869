"""Accepted sessions as a download that other trainers read as it is."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

from django.http import FileResponse, HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from agent import dialects
from annotation.access import is_admin
from annotation.data import exports
from annotation.errors import BadInput
from annotation.forms import ExportForm
from annotation.models import Session
from annotation.views.answers import conflict, members


@require_POST
@members(is_admin)
def export(request: HttpRequest) -> HttpResponse:
    """Send a zip: rows per step and per trajectory, their pictures, and what was left out."""
    form = ExportForm(request.POST)
    if not form.is_valid():
        return conflict(request, BadInput("choose one of the offered formats"))
    name = form.cleaned_data["dialect"]
    sessions = Session.objects.filter(status=Session.Status.ACCEPTED).select_related("task")
    if form.cleaned_data["domain"]:
        sessions = sessions.filter(task__domain=form.cleaned_data["domain"])
    format = exports.Format(
        dialect=dialects.load(name),
        observation="elements" if name == "element" else "screenshot",
        synthesized=not form.cleaned_data["thoughts"],
    )
    archive = tempfile.TemporaryFile()  # noqa: SIM115 - FileResponse closes it
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        done = exports.export(sessions.order_by("pk"), folder, format=format)
        if not done.sessions:
            return conflict(request, BadInput("no accepted session fits: nothing to export yet"))
        (folder / "left_out.txt").write_text("".join(f"{line}\n" for line in done.left_out))
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
            for path in sorted(folder.rglob("*")):
                # Pictures are compressed already.
                how = zipfile.ZIP_STORED if path.suffix == ".png" else zipfile.ZIP_DEFLATED
                out.write(path, path.relative_to(folder), compress_type=how)
    archive.seek(0)
    return FileResponse(archive, as_attachment=True, filename=f"tandem-{name}.zip")
