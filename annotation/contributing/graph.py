"""Verbs of applications and their functions: a tree of few levels, each name once below its parent."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.db.models import Count, Max

from annotation.contributing import scores
from annotation.errors import BadInput, Refused
from annotation.models import Application, Function, Project, Query

DEPTH = 6
PATH = ">"


@dataclass(slots=True)
class Node:
    """A function as a page shows it."""

    function: Function
    importance: float
    band: str
    queries: int
    children: list[Node] = field(default_factory=list)


def project() -> Project:
    """Return the one project of this server."""
    return Project.objects.get_or_create(pk=1)[0]


def save(row: models.Model) -> None:
    """Write a checked row; raises BadInput naming the field."""
    try:
        row.full_clean()
    except ValidationError as error:
        found = [(name, said) for name, all_ in error.message_dict.items() for said in all_]
        raise BadInput(
            "; ".join(said if name == "__all__" else f"{name}: {said}" for name, said in found)
        ) from None
    row.save()


@transaction.atomic
def save_function(function: Function) -> Function:
    """Write a function; raises BadInput where its place in the tree is none."""
    # One lock per tree: two moves at once could make a ring that neither of them sees.
    Application.objects.select_for_update().get(pk=function.application_id)
    parents = dict(
        Function.objects.filter(application=function.application_id).values_list("pk", "parent_id")
    )
    at, depth = function.parent_id, 1
    while at is not None:
        if at not in parents:
            raise BadInput("parent: it belongs to another application")
        if at == function.pk:
            raise BadInput("parent: a function can't stand below itself")
        at, depth = parents[at], depth + 1
    if depth + _height(function, parents) > DEPTH:
        raise BadInput(f"parent: a tree has at most {DEPTH} levels")
    if PATH in function.name:
        raise BadInput(f"name: {PATH} separates names in an import; leave it out")
    save(function)
    return function


@transaction.atomic
def delete_function(function: Function) -> None:
    """Delete a function with all below it; raises Refused while people are asked for its queries."""
    _refuse_published(Query.objects.filter(function__in=_below(function)))
    function.delete()


@transaction.atomic
def delete_application(application: Application) -> None:
    """Delete an application and its tree; raises Refused while people are asked for its queries."""
    _refuse_published(Query.objects.filter(function__application=application))
    application.delete()


def importances(application: Application | None = None) -> dict[int, float]:
    """Return the importance of every function, or of one application's, by its id."""
    rows = (
        Function.objects.filter(application=application) if application else Function.objects.all()
    )
    most = dict(Function.objects.order_by().values_list("application").annotate(Max("frequency")))
    weights = project()
    return {row.pk: scores.importance(row, weights, most=most[row.application_id]) for row in rows}


def tree(application: Application) -> list[Node]:
    """Return an application's functions, the most important first below each parent."""
    worth = importances(application)
    below: dict[int | None, list[Node]] = defaultdict(list)
    rows = application.functions.annotate(queries_n=Count("queries"))
    for row in sorted(rows, key=lambda row: (-worth[row.pk], row.name)):
        value = worth[row.pk]
        below[row.parent_id].append(Node(row, value, scores.importance_band(value), row.queries_n))
    for nodes in list(below.values()):
        for node in nodes:
            node.children = below.get(node.function.pk, [])
    return below.get(None, [])


def path(function: Function) -> list[Function]:
    """Return a function and those above it, the uppermost first."""
    rows = {row.pk: row for row in Function.objects.filter(application=function.application_id)}
    found = [function]
    while (above := found[0].parent_id) is not None:
        found.insert(0, rows[above])
    return found


def _below(function: Function) -> list[int]:
    found = [function.pk]
    for pk in found:
        found += Function.objects.filter(parent=pk).values_list("pk", flat=True)
    return found


def _height(function: Function, parents: dict[int, int | None]) -> int:
    """Return how many levels stand below a function."""
    level, height = {function.pk}, 0
    while function.pk and (level := {pk for pk, above in parents.items() if above in level}):
        height += 1
        if height > DEPTH:
            break
    return height


def _refuse_published(queries: models.QuerySet[Query]) -> None:
    count = queries.filter(state=Query.State.PUBLISHED).count()
    if count:
        raise Refused(f"people are asked for {count} of its queries: retire those first")
