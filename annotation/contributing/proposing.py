"""Queries by a model, where the project names a writer: they wait as written until a person publishes them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from agent import deployments
from agent.policy import PolicyError, PolicyMisconfigured
from annotation import jobs, storable
from annotation.contributing import graph, scores
from annotation.errors import BadInput, Refused
from annotation.models import Function, Level, Query, QueryRequest
from annotation.session import pictures

WANTED = 5
SILENT = timedelta(minutes=5)  # longer than any answer takes
LONGEST = 600  # characters of a query; a longer one is no query

ASK = """You design tasks that people record on their own computers. Write {wanted} different tasks for one function of \
one application. Each is one instruction to a person, at the level of {level}: complete, natural, doable on a real \
account without harm, without names or data of real people. Give each a difficulty, 0 to 3 in every line:
{rubric}
Application: {application}
Function: {path}
There already: {known}
Answer with a JSON list alone: [{{"text": "...", "steps": 0, "pages": 0, "prerequisites": 0, "exceptions": 0}}]"""


def ask(function: Function, *, level: str, by: User) -> QueryRequest:
    """Ask the project's writer for queries of a function; raises Refused where there is no writer."""
    if graph.project().writer is None:
        raise Refused("no deployment writes queries: choose one in the project's settings")
    if level not in Level.values:
        raise BadInput(f"level: must be one of {', '.join(Level.values)}")
    with transaction.atomic():
        Function.objects.select_for_update().get(pk=function.pk)
        waiting = function.requests.filter(status=QueryRequest.Status.WAITING, level=level).first()
        row = waiting or QueryRequest.objects.create(function=function, level=level, by=by)
        jobs.soon(jobs.write_queries, row.pk)
        return row


def write(request_id: int) -> int:
    """Ask the writer and keep what is new; returns how many. Done or failed ones are left alone."""
    rows = QueryRequest.objects.select_related("function__application")
    row = rows.filter(pk=request_id, status=QueryRequest.Status.WAITING).first()
    if row is None:
        return 0
    try:
        writer = graph.project().writer
        if writer is None:
            raise PolicyMisconfigured("the project has no writer any more")
        model = deployments.chat(writer, pictures=pictures.read)
        said = model.say([{"role": "user", "content": _question(row)}])
        found = _read(said.text)
    except (PolicyError, BadInput) as error:
        QueryRequest.objects.filter(pk=row.pk, status=QueryRequest.Status.WAITING).update(
            status=QueryRequest.Status.FAILED, cause=str(error)[:2000]
        )
        return 0
    with transaction.atomic():
        row = QueryRequest.objects.select_for_update().filter(pk=row.pk).first()
        if row is None or row.status != QueryRequest.Status.WAITING:
            return 0  # deleted, or another worker was quicker
        for values in found:
            new = not Query.objects.filter(function=row.function, text=values["text"]).exists()
            if new:
                Query.objects.create(
                    function=row.function, level=row.level, by=row.by, model_version=said.version[:100],
                    provenance=Query.Provenance.MODEL, **values,
                )  # fmt: skip
                row.came += 1
        row.status = QueryRequest.Status.DONE
        row.save(update_fields=["status", "came"])
    return row.came


def reap() -> None:
    """Enqueue what a dead worker left; two at one request cost time, nothing else."""
    old = timezone.now() - SILENT
    waiting = QueryRequest.objects.filter(status=QueryRequest.Status.WAITING, created_at__lt=old)
    # An hour later nobody waits for it any more.
    waiting.filter(created_at__lt=old - timedelta(hours=1)).update(
        status=QueryRequest.Status.FAILED, cause="no worker finished it within an hour: ask again"
    )
    for pk in waiting.values_list("pk", flat=True)[:20]:
        jobs.soon(jobs.write_queries, pk)


def _question(row: QueryRequest) -> str:
    lines = (
        f"{name}: " + ", ".join(f"{at} {words}" for at, words in enumerate(meanings))
        for name, (_, meanings) in scores.RUBRIC.items()
    )
    known = row.function.queries.values_list("text", flat=True)[:30]
    return ASK.format(
        wanted=WANTED, level=row.get_level_display().lower(), rubric="\n".join(lines),
        application=row.function.application.name,
        path=" > ".join(one.name for one in graph.path(row.function)),
        known=json.dumps(list(known), ensure_ascii=False) if known else "nothing",
    )  # fmt: skip


def _read(text: str) -> list[dict[str, Any]]:
    """Return the usable queries of an answer, at most WANTED; raises BadInput where there is none."""
    begin, end = text.find("["), text.rfind("]")
    try:
        answer = json.loads(text[begin : end + 1]) if 0 <= begin < end else None
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, list):
        raise BadInput(f"the model answered no JSON list, but: {text[:300]!r}")
    found: dict[str, dict[str, Any]] = {}
    for one in answer:
        words = one.get("text") if isinstance(one, dict) else None
        said = " ".join(words.split()) if isinstance(words, str) else ""
        if said and len(said) <= LONGEST and not storable.wrong(said):
            found[said] = {"text": said, **{name: _rated(one.get(name)) for name in Query.RUBRIC}}
    if not found:
        raise BadInput(f"the model answered no query that can be used: {text[:300]!r}")
    return list(found.values())[:WANTED]


def _rated(value: object) -> int:
    """Return 0 to 3; what is no number is 0, and a person sees it before anybody is asked."""
    return min(3, max(0, value)) if isinstance(value, int) and not isinstance(value, bool) else 0
