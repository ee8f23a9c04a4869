"""`manage.py iterate`: turn the flywheel, and watch it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import yaml
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agent.models import Deployment
from training.errors import Refused
from training.iterations import driver, iterations
from training.iterations.figures import WORDS, phase_state
from training.iterations.phases import ORDER
from training.models import Iteration

POLL_S = 2.0


class Command(BaseCommand):
    help = (
        "Start iterations of the flywheel, from a configuration of YAML (names and values as in the "
        "form; what is missing has its default). Given only --name, go on with one that exists."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("--config", type=Path, help="a YAML file")
        add("--count", type=int, default=1, help="iterations in a row, each from what is promoted")
        add("--deployment", help="what is improved; without one, the annotators' partner")
        add("--name", help="of the iteration; default: iteration and a number")
        add("--follow", action="store_true", help="watch until it and what follows it have ended")
        for verb in ("pause", "resume", "retry", "cancel"):
            add(f"--{verb}", action="store_true", help=f"{verb} the iteration of --name")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._handle(options)
        except Refused as error:
            raise CommandError(str(error)) from error

    def _handle(self, options: dict[str, Any]) -> None:
        known = Iteration.objects.filter(name=options["name"]).first() if options["name"] else None
        verbs = [v for v in ("pause", "resume", "retry", "cancel") if options[v]]
        if verbs:
            if known is None:
                raise CommandError("say with --name which iteration")
            row = getattr(iterations, verbs[0])(known)
            self._say(f"{row.name} is {row.state}")
        elif known is not None:
            row = known
        else:
            row = iterations.begin(
                deployment=_deployment(options["deployment"]),
                config=_config(options["config"]),
                by=None,
                name=options["name"] or "",
                count=options["count"],
            )
            self._say(f"{row.name} begins with {row.policy.version}")
        if options["follow"]:
            self._follow(row)
        elif not verbs:
            self._say(f"manage.py iterate --name {row.name} --follow watches it")

    def _follow(self, row: Iteration) -> None:
        """Say what changes until the last one of the chain has ended; Ctrl-C leaves it to the jobs.

        It takes the steps itself as well: two drivers do nothing twice.
        """
        said: dict[str, str] = {}
        try:
            while True:
                driver.go(row.pk)
                row = Iteration.objects.get(pk=row.pk)
                self._changes(row, said)
                if row.ended:
                    following = Iteration.objects.filter(previous=row).first()
                    if following is None:
                        break
                    row, said = following, {}
                    self._say(f"{row.name} begins with {row.policy.version}")
                    continue
                time.sleep(POLL_S)
        except KeyboardInterrupt:
            self._say(
                f"\nIt goes on; manage.py iterate --name {row.name} --follow watches it again"
            )
            raise SystemExit(130) from None
        if row.state != Iteration.State.DONE:
            raise CommandError(f"{row.name} {row.state}: {row.error or 'by hand'}")

    def _changes(self, row: Iteration, said: dict[str, str]) -> None:
        for place, name in enumerate(ORDER[:-1], 1):
            state, note = phase_state(row, name), row.phases.get(name, {}).get("note", "")
            if name == row.phase and not note and row.server_since:
                note = f"waits for its policy server {row.server_trouble}".strip()
            line = f"[{place:2}/{len(ORDER) - 1}] {WORDS[name][0]}: {state}" + (
                note and f", {note}"
            )
            if state != "waiting" and said.get(name) != line:
                said[name] = line
                self._say(line)
        if row.state == Iteration.State.DONE and "done" not in said:
            said["done"] = row.state
            self._say(f"{row.name}: {row.decision['words']}")

    def _say(self, text: str) -> None:
        self.stdout.write(text)


def _deployment(name: str | None) -> Deployment:
    rows = (
        Deployment.objects.filter(name=name) if name else Deployment.objects.filter(is_partner=True)
    )
    row = rows.first()
    if row is None:
        raise CommandError(f"no deployment {name!r}" if name else "no deployment is the partner")
    return row


def _config(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        record = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, yaml.YAMLError) as error:
        raise CommandError(f"{path} can't be read: {error}") from error
    if not isinstance(record, dict):
        raise CommandError(f"{path} holds no names and values")
    return record
