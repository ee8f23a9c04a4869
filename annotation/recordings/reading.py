"""Stage one: an uploaded recording's files become steps. Nothing is believed that was not checked."""

from __future__ import annotations

import tempfile
from pathlib import Path

from django.db import transaction
from PIL import Image, UnidentifiedImageError

from annotation.models import Recording, RecordingFile, RecordingStep
from annotation.recordings import checks, content
from annotation.recordings.errors import BadContent
from annotation.session import pictures
from blobs import MissingBlob, blob_key

PIXELS = 64_000_000


def read(recording: Recording) -> None:
    """Check events and steps, and write the steps; raises BadContent."""
    with tempfile.TemporaryDirectory() as folder:
        found = content.events(fetched(recording, "events.jsonl", Path(folder)))
        lines = content.steps(fetched(recording, "steps.jsonl", Path(folder)))
        listed = set(recording.files.values_list("path", flat=True))
        sizes: dict[str, tuple[int, int]] = {}
        for line in lines:
            if line.frame and line.frame not in sizes:
                if f"frames/{line.frame}.png" not in listed:
                    raise BadContent(
                        f"steps.jsonl: step {line.index + 1} shows frame {line.frame[:12]}, which is "
                        f"not in the manifest; {content.WAY_OUT}"
                    )
                sizes[line.frame] = _size(line.frame, Path(folder) / "frame.png")
    steps = [_step(recording, line, sizes.get(line.frame)) for line in lines]
    with transaction.atomic():
        row = Recording.objects.select_for_update().get(pk=recording.pk)
        if row.status != Recording.Status.UPLOADED:
            return
        row.steps.all().delete()
        RecordingStep.objects.bulk_create(steps, batch_size=1000)
        row.about = {
            **row.about, "seconds": found.ended, "drift_s": found.drift_s,
            "sounds": {
                name: sound.t for name, sound in found.sounds.items() if f"audio/{name}" in listed
            },
        }  # fmt: skip
        row.status, row.cause = Recording.Status.TRANSCRIBING, ""
        row.save(update_fields=["about", "status", "cause"])


def fetched(recording: Recording, path: str, folder: Path) -> Path:
    """Return one file of a recording, written to `folder`; raises BadContent where it has none."""
    file = RecordingFile.objects.filter(recording=recording, path=path, stored=True).first()
    if file is None:
        raise BadContent(f"{path} is not among the files of this recording; {content.WAY_OUT}")
    target = folder / Path(path).name
    try:
        pictures.store().fetch(blob_key(file.sha256), target)
    except MissingBlob as error:
        raise BadContent(f"{path} is gone from the store: {error}") from error
    return target


def _size(sha: str, target: Path) -> tuple[int, int]:
    """Return a frame's size in pixels; the file is checked, not decoded."""
    try:
        pictures.store().fetch(blob_key(sha), target)
        with Image.open(target, formats=["PNG"]) as image:
            width, height = image.size
            image.verify()
    except MissingBlob as error:
        raise BadContent(f"frame {sha[:12]} is gone from the store: {error}") from error
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        raise BadContent(f"frames/{sha}.png is no whole PNG; {content.WAY_OUT}") from None
    if width * height > PIXELS:
        raise BadContent(f"frames/{sha}.png has {width}×{height} pixels: too many")
    return width, height


def _step(recording: Recording, line: content.Line, size: tuple[int, int] | None) -> RecordingStep:
    problem = checks.problem(line.action, frame=size, element=line.element)
    width, height = size or (0, 0)
    return RecordingStep(
        recording=recording, index=line.index, began=line.began, ended=line.ended,
        action=line.action, screenshot=line.frame, width=width, height=height,
        element=line.element, window=line.window, problem=problem, kept=not problem,
    )  # fmt: skip
