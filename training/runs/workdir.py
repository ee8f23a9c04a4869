"""A run's directory on this machine: made from the row, or made again from what was uploaded."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from django.conf import settings

from blobs import BlobError, BlobStore, DirectoryBlobStore, MissingBlob, open_store
from training.data import mixture
from training.data.rows import PromptFormat
from training.data.stream_rows import STREAM, append
from training.errors import Refused
from training.models import Checkpoint, Run
from training.rewards import rows as verdicts
from training.rollouts import episodes
from training.runs.rundir import RunDir, RunDirError, folders
from training.streaming import tokens

AT_ONCE = 100  # episodes
STATES_KEPT = 2
CRITICS = "critics"  # beside checkpoints/, where a trainer moves a policy and a critic
_STEP = re.compile(r"/step-(\d+)\.pt$")

Kind = Run.Kind


class CannotPrepare(Exception):
    """There is nothing to train on, or it can't be had; the message says what to do."""


def directory_of(run: Run) -> Path:
    """Return where a run's directory is on this machine."""
    return Path(settings.RUNS_DIR) / run.name


def prepare(run: Run, directory: Path) -> dict[str, Any]:
    """Write configuration, data and pictures; may be done again over what is there.

    On a machine that has not seen the run before, its newest uploaded checkpoint is fetched, for
    the trainer to go on from. Returns what became of the data, for the row. Raises CannotPrepare.
    """
    try:
        config = _config(run, directory)
        match run.kind:
            case Kind.SFT | Kind.CT:
                report = _rows(directory, config, mixture.lines(run))
            case Kind.ORM:
                report = _verdicts(run, directory, config)
            case _:
                RunDir.create(directory, config=config)
                report = _episodes(run, directory) if run.kind == Kind.VALUE else {}
        _fetch_checkpoint(run, directory)
    except (BlobError, RunDirError, Refused) as error:
        raise CannotPrepare(str(error)) from error
    except KeyError as error:
        version = run.base.version if run.base else "the base"
        raise CannotPrepare(f"the manifest of {version} does not say its {error}") from error
    return report


def _config(run: Run, directory: Path) -> dict[str, Any]:
    """Return what the trainer is told: the run's own values, and where everything is."""
    config = {**run.config, "version": run.name, "blobs": str(directory)}
    if run.kind == Kind.MERGE:
        sources = run.sources.select_related("checkpoint").order_by("pk")
        return config | {
            "sources": [
                {
                    "uri": one.checkpoint.uri,
                    "version": one.checkpoint.version,
                    "sha256": one.checkpoint.sha256,
                    "weight": one.weight,
                }
                for one in sources
            ]
        }
    if run.base is None:
        raise CannotPrepare("the run has no base checkpoint")
    config |= PromptFormat.of_manifest(run.base.manifest).to_json() | {"base": run.base.uri}
    if run.kind in (Kind.VALUE, Kind.PPO):
        critic = run.critic.uri if run.critic else ""
        config |= {"actor": run.base.sha256, "critic": critic}
    if run.kind in (Kind.SFT, Kind.CT) and run.dataset is not None:
        mixed = run.mixed.select_related("dataset").order_by("pk")
        config["mix"] = {run.dataset.name: 1.0} | {one.dataset.name: one.weight for one in mixed}
    return config


def _rows(directory: Path, config: dict[str, Any], lines: mixture.Lines) -> dict[str, Any]:
    """Write the rows of a trainer over fixed data, with their pictures."""
    RunDir.create(directory, config=config, lines=lines)
    store = open_store(settings.STORAGE_URL)
    tokens.fetch(lines.pictures, store, DirectoryBlobStore(directory))
    return lines.report


def _verdicts(run: Run, directory: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Write the questions about episodes whose truth is known, with their pictures."""
    good, lost = verdicts.lines(run, kind=config["observation"])
    if not good:
        why = f": {lost[0][0]} {lost[0][1]}" if lost else ""
        raise CannotPrepare(f"the run has no episode that was verified{why}")
    RunDir.create(directory, config=config, lines=good)
    shown = (sha for line in good for sha in json.loads(line)["images"])
    tokens.fetch(shown, open_store(settings.STORAGE_URL), DirectoryBlobStore(directory))
    left_out = [{"id": name, "reason": reason} for name, reason in lost]
    return {
        "rows": len(good),
        "left_out_total": len(lost),
        "left_out": left_out[: mixture.SHOWN],
    }


def _episodes(run: Run, directory: Path) -> dict[str, Any]:
    """Write the finished episodes of the run's rollout, once."""
    if run.rollout is None:
        raise CannotPrepare("the run has no rollout whose episodes it could learn from")
    done = run.rollout.episodes.exclude(sequence=None)
    report = {"rows": done.count(), "left_out_total": 0, "left_out": []}
    stream = directory / STREAM
    if not report["rows"]:
        raise CannotPrepare(f"{run.rollout.name} has no finished episode: let it play first")
    if stream.exists():
        return report  # another look would find other episodes, where it still plays
    aside = directory / "stream.unfinished"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    last = 0
    while rows := episodes.finished(after=last, limit=AT_ONCE, rollout=run.rollout):
        append(aside, tokens.episodes(run.rollout, rows, directory))
        last = rows[-1].sequence or last
    append(aside, (), end=True)
    (aside / STREAM).replace(stream)
    aside.rmdir()
    return report


def finished_checkpoints(directory: Path) -> list[Path]:
    """Return the folders of the whole checkpoints, oldest first; a critic before its policy."""
    found = [
        (step, folder)
        for parent in (CRITICS, "checkpoints")
        for step, folder in folders(directory / parent).items()
    ]
    return [folder for _, folder in sorted(found, key=lambda one: one[0])]


def version_of(run: Run, folder: Path) -> str:
    """Return the version of a checkpoint by its folder in the run directory."""
    which = "critic-" if folder.parent.name == CRITICS else ""
    return f"{run.name}-{which}{folder.name}"


def _fetch_checkpoint(run: Run, directory: Path) -> None:
    """Bring the newest checkpoint here where there is none, with its critic and its state."""
    newest = run.checkpoints.order_by("-step").first()
    if newest is None or RunDir(directory).steps():
        return
    store = open_store(settings.STORAGE_URL)
    state = state_of(directory, newest.step)
    state.parent.mkdir(exist_ok=True)
    try:
        state.write_bytes(store.get_object(state_key(run, newest.step)))
    except MissingBlob:
        return  # without it a trainer begins again
    # The policy last: a folder below checkpoints/ says that all is there.
    for parent in (CRITICS, "checkpoints"):
        folder = directory / parent / f"step-{newest.step}"
        found = Checkpoint.objects.filter(version=version_of(run, folder)).first()
        if found is not None:
            partial = folder.with_name(f".{folder.name}")
            shutil.rmtree(partial, ignore_errors=True)
            store.get_folder(f"checkpoints/{found.version}", partial)
            partial.rename(folder)


def state_of(directory: Path, step: int) -> Path:
    """Return where a trainer keeps what it resumes with beside the checkpoint of `step`."""
    return directory / "state" / f"step-{step}.pt"


def state_key(run: Run, step: int) -> str:
    """Return the key of that file in the store."""
    return f"{_states_of(run)}step-{step}.pt"


def prune_states(run: Run, store: BlobStore) -> None:
    """Keep the newest states of a run in the store: each is some three times its weights."""
    steps = [
        int(found[1]) for key in store.list_keys(_states_of(run)) if (found := _STEP.search(key))
    ]
    for step in sorted(steps)[:-STATES_KEPT]:
        store.delete(state_key(run, step))


def _states_of(run: Run) -> str:
    return f"runs/{run.name}/state/"
