"""manage.py erase PSEUDONYM: what there is of a person; with --yes it is deleted."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.errors import Refused as NotNow
from blobs import BlobError
from training import erasure
from training.errors import Refused


class Command(BaseCommand):
    help = "Show what a contributor's data is in, or delete it for good (--yes)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("pseudonym")
        parser.add_argument("--yes", action="store_true", help="delete it")

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["pseudonym"]
        try:
            found = erasure.erase(name, by=None) if options["yes"] else erasure.trace(name)
        except (Refused, NotNow) as error:
            raise CommandError(str(error)) from error
        except BlobError as error:
            raise CommandError(
                f"the rows are deleted, files are left: {error}; run the same command again"
            ) from error
        rows = ", ".join(f"{count} {what}" for what, count in found.counts.items())
        self.stdout.write(f"{name}: {rows}")
        for what, names in (
            ("datasets", [one.name for one in found.datasets]),
            ("checkpoints", [one.version for one in found.checkpoints]),
            ("deployments that serve one", [one.name for one in found.deployments]),
            ("runs that are cancelled", [one.name for one in found.runs]),
        ):
            self.stdout.write(f"{what}: {', '.join(names) or 'none'}")
        if options["yes"]:
            left = name in erasure.unfinished()
            self.stdout.write(
                "deleted" + (", but folders of runs wait: again later" if left else "")
            )
        else:
            self.stdout.write("nothing was deleted: say --yes to do it")
