"""manage.py import_general FILE --name NAME: conversations from elsewhere, as a dataset."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from training.data import datasets
from training.errors import Refused


class Command(BaseCommand):
    help = "Import conversations (JSON lines of messages) to be mixed into CT and SFT runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--name", required=True, help="of the dataset")

    def handle(self, *args: Any, **options: Any) -> None:
        file: Path = options["file"]
        try:
            with file.open("rb") as lines:
                dataset = datasets.import_general(
                    name=options["name"], file=file.name, lines=lines, by=None
                )
        except OSError as error:
            raise CommandError(f"{file} can't be read: {error.strerror}") from error
        except Refused as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"{dataset.name}: {dataset.trajectories} conversations, {dataset.steps} replies learnt, "
            f"sha256 {dataset.sha256[:12]}"
        )
