"""manage.py freeze NAME --pool sft: freeze a dataset as the panel does, however long it takes."""

from __future__ import annotations

import datetime as dt
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from blobs import BlobError
from training.data import datasets
from training.data.selection import Filters
from training.errors import Refused


class Command(BaseCommand):
    help = "Freeze sessions and episodes into a dataset; a reward model may take its time to judge."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--pool", choices=["sft", "ct"], required=True)
        parser.add_argument("--source", choices=["sessions", "episodes"], default="")
        for name in ("domain", "task", "author", "judge"):
            parser.add_argument(f"--{name}", default="")
        for name in ("since", "until"):
            parser.add_argument(f"--{name}", type=dt.date.fromisoformat, help="a day, UTC")
        parser.add_argument(
            "--thoughts", choices=["all", "without-synthesized"], default="all",
            help="of recordings: leave out what a model made up",
        )  # fmt: skip
        parser.add_argument(
            "--rewordings", action="store_true", help="add recordings again in other words"
        )
        parser.add_argument("--undisputed", action="store_true")
        parser.add_argument("--rollouts", nargs="*", default=[])
        for name in ("per-seed", "per-task", "max-steps"):
            parser.add_argument(f"--{name}", type=int, default=0)
        parser.add_argument("--min-reward", type=float, default=0.0)

    def handle(self, *args: Any, **options: Any) -> None:
        values = {name: options[name] for name in Filters.__dataclass_fields__}
        filters = Filters(
            **values
            | {
                "rollouts": tuple(options["rollouts"]),
                "thoughts": "" if options["thoughts"] == "all" else options["thoughts"],
            }
        )
        try:
            made = datasets.freeze(
                name=options["name"], pool=options["pool"], filters=filters, by=None
            )
        except (Refused, BlobError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"{made.name}: {made.trajectories} trajectories, {made.steps} steps, "
            f"{made.augmented} more in other words, "
            f"{len(made.left_out)} left out, sha256 {made.sha256[:12]}"
        )
