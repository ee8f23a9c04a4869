"""Verbs of Query: write, edit, publish as a Task, retire. Only a person publishes."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import transaction

from annotation.contributing.graph import save
from annotation.errors import BadInput, Refused
from annotation.models import Application, Query, Task
from annotation.tasks import tasks

FIXED = ("text", "kind")
"""What people may have recorded already is not changed under them."""


@transaction.atomic
def write(query: Query, *, by: User, also: Sequence[Application]) -> Query:
    """Write a new query, or what was changed of one; raises BadInput, Refused.

    A model's query whose words a person changed says so from then on.
    """
    _check_also(query, also)
    query.text = " ".join(query.text.split())
    before = Query.objects.select_for_update().filter(pk=query.pk).first()
    if before is None:
        query.by = by
    else:
        query.state, query.task_id = before.state, before.task_id
        changed = [name for name in FIXED if getattr(before, name) != getattr(query, name)]
        if changed and before.task_id is not None:
            raise Refused(
                f"{' and '.join(changed)}: people were asked for it already; retire it and write another"
            )
        if "text" in changed and before.provenance == Query.Provenance.MODEL:
            query.provenance = Query.Provenance.EDITED
    save(query)
    query.also.set(also)
    if query.task_id is not None:
        Task.objects.filter(pk=query.task_id).update(needed=query.wanted)
    return query


@transaction.atomic
def publish(query: Query) -> Query:
    """Ask people for it from now on; publishing it again changes nothing. Raises Refused."""
    row = Query.objects.select_for_update(of=("self",)).select_related("function__application")
    query = row.get(pk=query.pk)
    if query.state == Query.State.RETIRED:
        raise Refused("it was retired: write another one")
    if query.task_id is None:
        task = tasks.create(
            external_id=f"query/{query.pk}", instruction=query.text,
            domain=query.function.application.name, needed=query.wanted, recorded_as=query.kind,
        )  # fmt: skip
        query.task, query.state = task, Query.State.PUBLISHED
        query.save(update_fields=["task", "state"])
    return query


@transaction.atomic
def retire(query: Query) -> Query:
    """Ask nobody for it any more; what was recorded of it stays."""
    query = Query.objects.select_for_update().get(pk=query.pk)
    if query.task_id is not None:
        tasks.retire(Task.objects.get(pk=query.task_id))
    query.state = Query.State.RETIRED
    query.save(update_fields=["state"])
    return query


def _check_also(query: Query, also: Sequence[Application]) -> None:
    if query.function.application in also:
        raise BadInput("also: name the other applications; its own is clear")
