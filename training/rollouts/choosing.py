"""Which episodes a person asks for: patterns of tasks and ranges of seeds, as typed."""

from __future__ import annotations

import logging
import re
from fnmatch import fnmatchcase

from sandbox import families
from training.errors import BadConfig

log = logging.getLogger(__name__)
MAX_SEEDS = 100_000
NUMBER = re.compile(r"[0-9]{1,20}")


def tasks_of(text: str) -> list[tuple[str, str]]:
    """Return the (family, task) that lines such as "miniwob", "games/2048" or "miniwob/click-*" name.

    A family by itself means all of its tasks. Raises BadConfig for what names nothing.
    """
    chosen: dict[tuple[str, str], None] = {}
    for pattern in text.replace(",", " ").split():
        family, _, wanted = pattern.partition("/")
        try:
            names = [task.name for task in families.load(family).list()]
        except families.UnknownTask as error:
            raise BadConfig({"tasks": str(error)}) from error
        found = [name for name in names if fnmatchcase(name, wanted or "*")]
        if not found:
            raise BadConfig({"tasks": f"{family} has no task {wanted!r} among its {len(names)}"})
        chosen.update(dict.fromkeys((family, name) for name in found))
    if not chosen:
        raise BadConfig({"tasks": "name at least one family or task"})
    return list(chosen)


def seeds_of(text: str) -> list[int]:
    """Return the seeds of "0:10" (10 not included), "3" or "1, 5, 20:30". Raises BadConfig."""
    seeds: dict[int, None] = {}
    for part in text.replace(",", " ").split():
        first, colon, end = part.partition(":")
        if not (NUMBER.fullmatch(first) and (NUMBER.fullmatch(end) if colon else True)):
            raise BadConfig({"seeds": f"{part!r} is neither a number nor a range such as 0:10"})
        last = int(end) if colon else int(first) + 1
        if last - int(first) + len(seeds) > MAX_SEEDS:
            raise BadConfig({"seeds": f"more than {MAX_SEEDS} seeds"})
        seeds.update(dict.fromkeys(range(int(first), last)))
    if not seeds:
        raise BadConfig({"seeds": "give at least one seed"})
    return list(seeds)


def sizes() -> list[tuple[str, int]]:
    """Return each family with how many tasks it has; a family that can't list has none."""
    found = []
    for name in families.NAMES:
        try:
            found.append((name, len(families.load(name).list())))
        except Exception:  # one family must not take the page down
            log.exception("the family %s can't list its tasks", name)
            found.append((name, 0))
    return found
