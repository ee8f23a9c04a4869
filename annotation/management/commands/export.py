"""manage.py export FOLDER: accepted sessions as training files."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from agent import dialects
from annotation.data import exports
from annotation.models import Session


class Command(BaseCommand):
    help = "Write accepted sessions as JSON lines with pictures (UI-TARS, LLaMA-Factory, TRL)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)
        parser.add_argument("--dialect", choices=["box", "point", "element"], default="box")
        parser.add_argument(
            "--coordinates",
            choices=["thousandth", "resized", "frame"],
            default="thousandth",
        )
        parser.add_argument("--history", type=int, default=5, help="pictures per row")
        parser.add_argument(
            "--thoughts", choices=["all", "without-synthesized"], default="all",
            help="of recordings: leave out what a model made up",
        )  # fmt: skip
        parser.add_argument("--domain", default="", help="only tasks of this domain")

    def handle(self, *args: Any, **options: Any) -> None:
        folder: Path = options["folder"]
        if folder.exists() and any(folder.iterdir()):
            raise CommandError(f"{folder} is not empty: name a new folder")
        sessions = Session.objects.filter(status=Session.Status.ACCEPTED).select_related("task")
        if options["domain"]:
            sessions = sessions.filter(task__domain=options["domain"])
        name = options["dialect"]
        format = exports.Format(
            dialect=dialects.load(name, None if name == "element" else options["coordinates"]),
            observation="elements" if name == "element" else "screenshot",
            history_n=options["history"],
            synthesized=options["thoughts"] == "all",
        )
        done = exports.export(sessions.order_by("pk"), folder, format=format)
        for line in done.left_out:
            self.stderr.write(f"left out: {line}")
        self.stdout.write(
            f"{folder}: {done.sessions} sessions, {done.steps} steps, {done.pictures} pictures"
        )
