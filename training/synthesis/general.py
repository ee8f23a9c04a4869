"""GUI-General: survey a site, find functions, do each, drop the trivial, compose, put into words.

The stages are UI-TARS-2's (section 2.5, offline synthesis over curated web sites); what is added is that
a function counts only after its plan has been carried out on a fresh copy of the site: the rows that
changed become the check, so the verifier is right by construction and the task possible by proof.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sandbox.families.protocol import NoWay, checksum
from sandbox.provider import ActionFailed, Desktop
from sandbox.sites import change
from sandbox.sites.app import App
from sandbox.sites.change import Change
from sandbox.sites.plan import Follower, Plan
from sandbox.sites.server import server
from training.synthesis.similar import Seen
from training.synthesis.survey import Dropped, Surveyed, survey
from training.synthesis.writer import Idea, Unreadable, Writer
from trajectory import Actor, Finish, Navigate, Observation, Step

VERSION = "1"
MAX_ACTIONS = 60


@dataclass(frozen=True, slots=True)
class Function:
    """One thing that a site can do: the way there and through the form, and what it changed."""

    purpose: str
    page: str
    plan: tuple[dict[str, dict[str, str]], ...]
    change: Change


@dataclass(slots=True)
class Made:
    """What a synthesis came to: tasks as records of the family, and all that was left out."""

    tasks: list[dict[str, Any]] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)


def synthesise(
    desktop: Desktop, app: App, writer: Writer, *, count: int, seed: int, epoch: int
) -> Made:
    """Make up to `count` tasks of one app with the rows of `seed`; half of them of several functions."""
    made, rng = Made(), random.Random(f"general/{app.name}/{seed}")
    site = server().open(app, seed)
    try:
        pages, made.dropped = survey(desktop, site.url, epoch=epoch)
    finally:
        server().close(site)
    functions = list(_functions(desktop, app, writer, pages, seed, rng, epoch, made.dropped))
    rng.shuffle(functions)
    seen = Seen()
    chosen: list[list[Function]] = [[f] for f in functions]
    chosen += [
        rng.sample(functions, n) for n in rng.choices((2, 2, 3), k=2 * count) if n <= len(functions)
    ]
    rng.shuffle(chosen)
    for parts in chosen:
        if len(made.tasks) == count:
            break
        task = _task(desktop, app, writer, parts, seed, epoch, made.dropped)
        if task is None:
            continue
        if twin := seen.twin(task["instruction"], checksum(task["change"])):
            made.dropped.append(Dropped(task["instruction"], f"is like {twin!r}"))
            continue
        seen.add(task["instruction"], checksum(task["change"]))
        task["name"] = f"{app.name}-{seed}-{len(made.tasks):02}"
        made.tasks.append(task)
    return made


def _functions(
    desktop: Desktop,
    app: App,
    writer: Writer,
    pages: Sequence[Surveyed],
    seed: int,
    rng: random.Random,
    epoch: int,
    dropped: list[Dropped],
) -> Iterator[Function]:
    """Yield what the writer finds and the site really does; the rest goes to `dropped`."""
    for page in pages:
        if not page.forms:
            continue
        try:
            ideas = writer.functions(page, rng)
        except Unreadable as error:
            dropped.append(Dropped(page.heading, f"the writer's answer: {error}"))
            continue
        for idea in ideas:
            plan = plan_of(page, idea)
            done = carry_out(desktop, app, [plan], seed=seed, epoch=epoch)
            if isinstance(done, str):
                dropped.append(Dropped(idea.purpose, done))
            elif not done:
                dropped.append(Dropped(idea.purpose, "changes nothing that can be checked"))
            else:
                yield Function(idea.purpose, page.heading, tuple(plan), done)


def plan_of(page: Surveyed, idea: Idea) -> list[dict[str, dict[str, str]]]:
    """Return the way to the page, through the form's fields, to its button."""
    form = page.forms[idea.form]
    kinds = {field["label"]: field["type"] for field in form.fields}
    plan: list[dict[str, dict[str, str]]] = [
        {"click": {"role": "link", "name": name}} for name in page.path
    ]
    for label, value in idea.entries.items():
        if kinds[label] == "choice":
            plan.append({"click": {"role": "radio", "name": value}})
        else:
            plan.append({"fill": {"name": label, "text": value}})
    return [*plan, {"click": {"role": "button", "name": form.submit}}]


def carry_out(
    desktop: Desktop, app: App, plans: Sequence[Plan], *, seed: int, epoch: int
) -> Change | str:
    """Follow the plans one after the other on a fresh site, each from its first page.

    Returns what changed, or in words why it could not be done.
    """
    site = server().open(app, seed)
    try:
        for plan in plans:
            _go(desktop, site.url, epoch)
            _follow(desktop, plan, epoch)
        return change.between(site.begun, site.state())
    except (NoWay, ActionFailed) as error:
        return str(error)
    finally:
        server().close(site)


def _go(desktop: Desktop, url: str, epoch: int) -> None:
    desktop.perform(Navigate(url), epoch=epoch, action_id=f"made-{uuid.uuid4().hex}")


def _follow(desktop: Desktop, plan: Plan, epoch: int) -> None:
    follower, steps = Follower(plan), list[Step]()
    nothing = Observation("", desktop.width, desktop.height)
    while len(steps) < MAX_ACTIONS:
        thought, action = follower.decide(desktop, steps)
        if isinstance(action, Finish):
            desktop.settle(quiet_ms=250, max_ms=2000)
            return
        desktop.perform(action, epoch=epoch, action_id=f"made-{uuid.uuid4().hex}")
        steps.append(Step(len(steps), nothing, thought, action, Actor.ORACLE))
    raise NoWay(f"the plan is longer than {MAX_ACTIONS} actions")


def _task(
    desktop: Desktop,
    app: App,
    writer: Writer,
    parts: Sequence[Function],
    seed: int,
    epoch: int,
    dropped: list[Dropped],
) -> dict[str, Any] | None:
    """Return the record of a task that asks for all `parts`, or None after saying why not."""
    purposes = [part.purpose for part in parts]
    try:
        instruction = writer.instruct(app.title, purposes)
    except Unreadable as error:
        dropped.append(Dropped("; ".join(purposes), f"the writer's answer: {error}"))
        return None
    back = {"click": {"role": "link", "name": app.menu[0][0]}}
    plan = [step for n, part in enumerate(parts) for step in ([back] * bool(n) + list(part.plan))]
    done = carry_out(desktop, app, [plan], seed=seed, epoch=epoch)
    if isinstance(done, str) or not done:
        dropped.append(Dropped(instruction, done if isinstance(done, str) else "undoes itself"))
        return None
    entered = {v for part in parts for s in part.plan for v in s.get("fill", {}).values()}
    entered -= {s["fill"]["name"] for part in parts for s in part.plan if "fill" in s}
    arrived = change.values(done)
    if lost := sorted(entered - arrived):
        dropped.append(Dropped(instruction, f"{lost[0]!r} was entered and did not arrive"))
        return None
    if unsaid := sorted(value for value in entered if value not in instruction):
        dropped.append(Dropped(instruction, f"does not say {unsaid[0]!r}, which it wants entered"))
        return None
    return {
        "site": app.name,
        "data_seed": seed,
        "instruction": instruction,
        "plan": plan,
        "change": done,
        "provenance": {
            "pipeline": f"general-{VERSION}",
            "writer": writer.version,
            "pages": sorted({part.page for part in parts}),
            "functions": purposes,
        },
    }
