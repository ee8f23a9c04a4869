"""Whose turn is which task: the least covered cell of importance and difficulty first."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from annotation.contributing import graph, scores
from annotation.contributing.scores import Cell
from annotation.models import Offer, Project, Query, Task
from annotation.recordings import asked


@dataclass(slots=True)
class Coverage:
    """How many recordings a cell wants, how many came, and how many are kept for somebody."""

    wanted: int = 0
    come: int = 0
    held: int = 0

    @property
    def share(self) -> float:
        """Return what came or is under way, of 1."""
        return (self.come + self.held) / self.wanted if self.wanted else 1.0


def take(user: User, *, kind: str = "", another: bool = False) -> Task | None:
    """Return the task that `user` records next, kept for them a while; None where none is left.

    Asking again gives the same one until it is recorded or its time is over; `another` passes it by for
    good. No task is offered twice to one person, nor to more people than recordings are wanted.
    """
    with transaction.atomic():
        # One dispatch at a time: two could each count the other's offer as not there.
        project = Project.objects.select_for_update().get(pk=graph.project().pk)
        now = timezone.now()
        mine = asked.live(user).filter(task__state=Task.State.OPEN).select_related("task")
        if kind:
            mine = mine.filter(task__recorded_as=kind)
        if another:
            Offer.objects.filter(pk__in=[row.pk for row in mine]).update(expires_at=now)
        elif (held := mine.first()) is not None:
            return held.task
        task = _neediest(user, kind)
        if task is not None:
            until = now + timedelta(hours=project.offer_hours)
            Offer.objects.create(task=task, user=user, expires_at=until)
        return task


def coverage() -> dict[Cell, Coverage]:
    """Return what came of what is wanted, of each cell that has a published query."""
    found: dict[Cell, Coverage] = defaultdict(Coverage)
    for task, cell in _cells().items():
        if cell is not None and task.state != Task.State.RETIRED:
            _count(found[cell], task)
    return dict(found)


def _neediest(user: User, kind: str) -> Task | None:
    mine = asked.tasks(user)
    wanted = set((mine.filter(recorded_as=kind) if kind else mine).values_list("pk", flat=True))
    if not wanted:
        return None
    cells = _cells()
    whole: dict[Cell | None, Coverage] = defaultdict(Coverage)
    for task, cell in cells.items():
        if task.state == Task.State.OPEN:
            _count(whole[cell], task)

    def turn(task: Task) -> tuple[float, ...]:
        cell = cells[task]
        rank = scores.BANDS.index(cell.importance) if cell else 0
        return (
            -task.priority, whole[cell].share, -rank, (task.come + task.held) / task.needed,
            -task.worth, task.pk,
        )  # fmt: skip

    # Those that closed between the two looks are no longer there.
    return min((task for task in cells if task.pk in wanted), key=turn, default=None)


def _cells() -> dict[Task, Cell | None]:
    """Return every recorded task with its counts, its `worth` and its cell; None: no query's."""
    project, worth = graph.project(), graph.importances()
    queries = {
        row.task_id: row
        for row in Query.objects.exclude(task=None).select_related("function__application")
    }
    found: dict[Task, Cell | None] = {}
    for task in asked.counted().exclude(external_id__startswith="recording/"):
        query = queries.get(task.pk)
        task.worth, found[task] = 0.0, None
        if query is not None:
            value = worth[query.function_id]
            task.worth = value * scores.score(query.function.application, project)
            found[task] = Cell(scores.importance_band(value), scores.difficulty_band(query))
    return found


def _count(into: Coverage, task: Task) -> None:
    into.wanted += task.needed
    into.come += min(task.come, task.needed)
    into.held += min(task.held, max(0, task.needed - task.come))
