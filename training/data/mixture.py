"""What a run over frozen data learns from: the rows of its dataset and of those mixed into it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from training.data import datasets, general
from training.data.rows import LeftOut, PromptFormat, Row, rows
from training.data.texts import texts
from training.errors import Refused
from training.models import Dataset, Run

SHOWN = 50  # left-out steps that are named on the row; all are counted


class NothingToLearn(Refused):
    """A dataset of the run gives no row; the message names it and why."""


class Lines:
    """The lines of data.jsonl, once through; what became of the steps is known after the last."""

    def __init__(self, found: Iterator[Row | LeftOut]) -> None:
        self._found = found
        self.pictures: dict[str, None] = {}  # sha256 of each that a row shows, in order
        self._sources: Counter[str] = Counter()
        self._left_out: list[LeftOut] = []
        self._lost = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        for row in self._found:
            if isinstance(row, Row):
                self._sources[row.source] += 1
                self.pictures.update(dict.fromkeys(row.images))
                return row.to_line()
            self._lost += 1
            if len(self._left_out) < SHOWN:
                self._left_out.append(row)
        raise StopIteration

    @property
    def report(self) -> dict[str, Any]:
        """What Run.rows keeps: {"rows", "sources": {dataset: rows}, "left_out_total", "left_out"}."""
        return {
            "rows": self._sources.total(),
            "sources": dict(self._sources),
            "left_out_total": self._lost,
            "left_out": [asdict(row) for row in self._left_out],
        }


def lines(run: Run) -> Lines:
    """Return the lines of a run's data.jsonl, each with its dataset's name as `source`.

    A trajectory becomes one row per step with loss on the target. A CT run, and a dataset of the
    CT pool wherever it is mixed in, get loss on all text. Raises KeyError where the manifest of the
    base does not say how it is asked, and while reading NothingToLearn, Erased and BlobError.
    """
    if run.base is None:
        raise NothingToLearn("the run has no base checkpoint, which says how rows are written")
    if run.dataset is None:
        raise NothingToLearn("the run has no dataset")
    form = PromptFormat.of_manifest(run.base.manifest)
    mixed = run.mixed.select_related("dataset").order_by("pk")
    chosen = [run.dataset, *(one.dataset for one in mixed)]
    return Lines(
        row
        for dataset in chosen
        for row in told(dataset, form, whole=run.kind == Run.Kind.CT, reader=run.base.version)
    )


def told(
    dataset: Dataset, form: PromptFormat, *, whole: bool, reader: str
) -> Iterator[Row | LeftOut]:
    """Yield the rows of one dataset as the checkpoint `reader` reads them; raises as `lines` does."""
    found: Iterator[Row | LeftOut]
    if dataset.pool == Dataset.Pool.GENERAL:
        found = general.rows(datasets.conversations(dataset), name=dataset.name, whole=whole)
    elif whole or dataset.pool == Dataset.Pool.CT:
        found = texts(datasets.trajectories(dataset), form)
    else:
        found = rows(datasets.trajectories(dataset), form)
    good, why = 0, ""
    for row in found:
        if isinstance(row, LeftOut):
            why = why or f": {row.id} {row.reason}"
            yield row
        else:
            good += 1
            yield replace(row, source=dataset.name)
    if not good:
        raise NothingToLearn(
            f"no step of {dataset.name} can be trained on as {reader} reads it{why}"
        )
