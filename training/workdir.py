"""A run's directory on this machine: made from the row, or made again from what was uploaded."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings

from blobs import BlobError, DirectoryBlobStore, open_store
from training import datasets
from training.models import Run
from training.rows import LeftOut, PromptFormat, Row, rows
from training.rundir import RunDir, RunDirError

SHOWN = 50  # left-out steps that are named on the row; all are counted


class CannotPrepare(Exception):
    """There is nothing to train on, or it can't be had; the message says what to do."""


def directory_of(run: Run) -> Path:
    """Return where a run's directory is on this machine."""
    return Path(settings.RUNS_DIR) / run.name


def prepare(run: Run, directory: Path) -> dict[str, Any]:
    """Write configuration, data and pictures; may be done again over what is there.

    On a machine that has not seen the run before, its newest uploaded checkpoint is fetched, for
    the trainer to go on from. Returns what became of the dataset's steps, for the row. Raises
    CannotPrepare.
    """
    if run.base is None:
        raise CannotPrepare("the run has no base checkpoint")
    try:
        form = PromptFormat.of_manifest(run.base.manifest)
        found = list(rows(datasets.trajectories(run.dataset), form))
        good = [row for row in found if isinstance(row, Row)]
        lost = [row for row in found if isinstance(row, LeftOut)]
        if not good:
            why = f": {lost[0].id} {lost[0].reason}" if lost else ""
            raise CannotPrepare(
                f"no step of {run.dataset.name} can be trained on as {run.base.version} reads it{why}"
            )
        config = {
            **run.config,
            **form.to_json(),
            "base": run.base.uri,
            "version": run.name,
            "blobs": str(directory),
        }
        RunDir.create(directory, config=config, lines=(row.to_line() for row in good))
        _fetch_pictures(directory, (sha for row in good for sha in row.images))
        _fetch_checkpoint(run, directory)
    except (BlobError, RunDirError) as error:
        raise CannotPrepare(str(error)) from error
    except KeyError as error:
        raise CannotPrepare(
            f"the manifest of {run.base.version} does not say its {error}"
        ) from error
    return {
        "rows": len(good),
        "left_out_total": len(lost),
        "left_out": [asdict(row) for row in lost[:SHOWN]],
    }


def finished_checkpoints(directory: Path) -> list[Path]:
    """Return the folders of the whole checkpoints, oldest first."""
    run = RunDir(directory)
    return [run.checkpoint(step) for step in run.steps()]


def _fetch_pictures(directory: Path, wanted: Iterator[str]) -> None:
    store, here = open_store(settings.STORAGE_URL), DirectoryBlobStore(directory)
    for sha in dict.fromkeys(wanted):
        if not here.exists(sha):
            here.put(store.get(sha))


def _fetch_checkpoint(run: Run, directory: Path) -> None:
    newest = run.checkpoints.order_by("-step").first()
    if newest is None or RunDir(directory).steps():
        return
    folder = RunDir(directory).checkpoint(newest.step)
    partial = folder.with_name(f".{folder.name}")
    shutil.rmtree(partial, ignore_errors=True)
    store = open_store(settings.STORAGE_URL)
    store.get_folder(f"checkpoints/{newest.version}", partial)
    state = state_of(directory, newest.step)
    state.parent.mkdir(exist_ok=True)
    state.write_bytes(store.get_object(state_key(run, newest.step)))
    partial.rename(folder)


def state_of(directory: Path, step: int) -> Path:
    """Return where a trainer keeps what it resumes with beside the checkpoint of `step`."""
    return directory / "state" / f"step-{step}.pt"


def state_key(run: Run, step: int) -> str:
    """Return the key of that file in the store."""
    return f"runs/{run.name}/state/step-{step}.pt"
