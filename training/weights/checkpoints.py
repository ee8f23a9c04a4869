"""Verbs of Checkpoint: registering the weights that ship, and storing those of a run."""

from __future__ import annotations

import json
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from blobs import open_store
from training.models import Checkpoint, Run
from training.runs import workdir
from training.weights.fingerprint import files_of, fingerprint

BOX = Path(settings.BASE_DIR) / "agent" / "box"
MANIFEST = "tandem.json"


def register_box() -> Checkpoint:
    """Return the checkpoint that ships with Tandem as a row, made or brought up to date."""
    manifest = json.loads((BOX / MANIFEST).read_text())
    metrics = BOX / "metrics.json"
    box, _ = Checkpoint.objects.update_or_create(
        version=manifest.get("version") or "box",
        defaults={
            "uri": str(BOX),
            "sha256": fingerprint(files_of(BOX)),
            "manifest": manifest,
            "metrics": json.loads(metrics.read_text()) if metrics.exists() else {},
        },
    )
    return box


def upload(run: Run, folder: Path) -> Checkpoint:
    """Store `folder` (step-N below checkpoints/ or critics/ of the run directory); return its row.

    Doing it twice changes nothing: the version is made from run and step.
    """
    step = int(folder.name.removeprefix("step-"))
    version = workdir.version_of(run, folder)
    known = Checkpoint.objects.filter(version=version).first()
    if known is not None:
        return marked(known, run)
    files = files_of(folder)
    store = open_store(settings.STORAGE_URL)
    uri = store.put_folder(f"checkpoints/{version}", folder)
    # Before the row: whoever goes on from the row's checkpoint on another machine needs it.
    state = workdir.state_of(folder.parents[1], step)
    if state.exists():
        store.put_object(workdir.state_key(run, step), state)
    manifest = json.loads((folder / MANIFEST).read_text())
    beside = folder.parent.name == workdir.CRITICS
    checkpoint, _ = Checkpoint.objects.get_or_create(
        version=version,
        defaults={
            "run": run,
            "parent": (run.critic or run.base) if beside else run.base,
            "role": manifest.get("role") or Checkpoint.Role.POLICY,
            "step": step,
            "uri": uri,
            "sha256": fingerprint(files),
            "manifest": manifest,
            "metrics": metrics_at(run, step),
        },
    )
    workdir.prune_states(run, store)
    return marked(checkpoint, run)


def marked(checkpoint: Checkpoint, run: Run) -> Checkpoint:
    """Mark a checkpoint where data was deleted since, that its run or one of its sources learnt from."""
    now = Run.objects.select_related("base", "critic", "dataset").get(pk=run.pk)
    sources = [now.base, now.critic, *(one.checkpoint for one in now.sources.all())]
    datasets = [now.dataset, *(one.dataset for one in now.mixed.all())]
    if any(one is not None and one.erased_at is not None for one in [*sources, *datasets]):
        rows = Checkpoint.objects.filter(pk=checkpoint.pk, erased_at=None)
        rows.update(erased_at=timezone.now())
        checkpoint.refresh_from_db()
    return checkpoint


def metrics_at(run: Run, step: int) -> dict[str, object]:
    """Return what the trainer said last at or before `step`."""
    line = run.series.filter(step__lte=step).last()
    return dict(line.values) if line is not None else {}
