"""manage.py offer_tasks FAMILY: a family's desktop tasks into the annotators' queue."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.errors import BadInput
from annotation.tasks import families as offered
from sandbox import families
from sandbox.osworld.support import tally


class Command(BaseCommand):
    help = "Offer the desktop tasks of a family (osworld, hybrid) to annotators."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("family", choices=families.NAMES)
        parser.add_argument("--task", action="append", default=[], help="only this one; repeatable")
        parser.add_argument("--seeds", type=int, nargs="+", default=[0])
        parser.add_argument("--dry-run", action="store_true", help="only say what would be offered")

    def handle(self, *args: Any, **options: Any) -> None:
        family: Any = families.load(options["family"])
        left_out = getattr(family, "left_out", {})
        for problem in getattr(family, "unreadable", []):
            self.stderr.write(f"not read: {problem}")
        for name, reasons in left_out.items():
            self.stderr.write(f"left out: {name}: {'; '.join(map(str, reasons))}")
        tasks = [spec for spec in family.list() if spec.surface == "desktop"]
        self.stdout.write(f"{len(tasks)} tasks can be done here, {len(left_out)} can't")
        for kind, count in tally(left_out.values()).most_common():
            self.stdout.write(f"  {count:4} {kind}")
        if options["dry_run"]:
            return
        try:
            created = offered.offer(
                options["family"], seeds=options["seeds"], names=options["task"]
            )
        except (families.UnknownTask, BadInput) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{len(created)} tasks are new in the queue")
