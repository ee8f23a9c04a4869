"""A family's desktop tasks as tasks for annotators: one row per task and seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction

from annotation.errors import BadInput
from annotation.models import Task
from sandbox import families
from sandbox.families import TaskSpec


def offer(family_name: str, *, seeds: Iterable[int], names: Sequence[str] = ()) -> list[Task]:
    """Create what is not there yet, and return only that; `names` are all where none is named.

    Raises UnknownTask, and BadInput where a family's tasks can't be offered on a desktop.
    """
    family: Any = families.load(family_name)
    if not hasattr(family, "instruction"):
        raise BadInput(f"{family_name} says what to do only on its own pages: play it by rollouts")
    specs: list[TaskSpec] = [families.find(family, name) for name in names] or list(family.list())
    wanted = {
        f"{spec.id}/{seed}": (spec, seed)
        for seed in seeds
        for spec in specs
        if spec.surface == "desktop"
    }
    with transaction.atomic():
        known = set(
            Task.objects.filter(external_id__in=wanted).values_list("external_id", flat=True)
        )
        return Task.objects.bulk_create(
            [
                Task(
                    external_id=name,
                    instruction=family.instruction(spec, seed),
                    domain=spec.tags[0][:64] if spec.tags else family_name,
                    setup=[{"kind": "family", "task": spec.id, "seed": seed}],
                    verifier={"kind": "family", "task": spec.id, "seed": seed},
                    max_steps=spec.max_steps,
                )
                for name, (spec, seed) in wanted.items()
                if name not in known
            ]
        )
