"""Rows as a trainer sees them, with what gets loss marked: before a launch, and on a run's page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from blobs import BlobError
from training.data import mixture
from training.data.rows import LeftOut, PromptFormat, Row
from training.errors import Refused
from training.models import Checkpoint, Dataset, Run

KINDS = (Run.Kind.SFT, Run.Kind.CT)
LOOKED_THROUGH = 200  # steps of a dataset before it is said that none gives a row


def of(
    kind: str, base: Checkpoint | None, chosen: Iterable[Dataset | None], *, each: int = 1
) -> dict[str, Any]:
    """Return the context of `_run_sample.html`: `each` first rows of every dataset, and what is wrong."""
    found = [dataset for dataset in chosen if dataset is not None]
    if base is None or not found:
        return {"sample": [], "sample_errors": ["Choose a base checkpoint and a dataset first."]}
    try:
        form = PromptFormat.of_manifest(base.manifest)
    except KeyError as error:
        says = f"the manifest of {base.version} does not say its {error}"
        return {"sample": [], "sample_errors": [says]}
    sample: list[dict[str, Any]] = []
    errors = []
    for dataset in found:
        try:
            made, why = _first(
                mixture.told(dataset, form, whole=kind == Run.Kind.CT, reader=base.version), each
            )
        except (BlobError, Refused) as error:
            errors.append(str(error))
            continue
        sample += [{"row": row, "dataset": dataset, "all": row.loss == "all"} for row in made]
        if not made:
            errors.append(f"no step of {dataset.name} gives a row{why}")
    return {"sample": sample, "sample_errors": errors, "reader": base.version}


def of_run(run: Run, *, each: int = 2) -> dict[str, Any]:
    """Return the first rows that a run over frozen data learns from."""
    mixed = [one.dataset for one in run.mixed.select_related("dataset")]
    return of(run.kind, run.base, [run.dataset, *mixed], each=each)


def _first(found: Iterator[Row | LeftOut], each: int) -> tuple[Sequence[Row], str]:
    made: list[Row] = []
    why = ""
    for row in islice(found, LOOKED_THROUGH):
        if isinstance(row, Row):
            made.append(row)
        else:
            why = why or f": {row.id} {row.reason}"
        if len(made) == each:
            break
    return made, why
