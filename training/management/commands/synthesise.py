"""manage.py synthesise KIND: make tasks from our sites, and say what was dropped and why."""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from agent import deployments
from agent.models import Deployment
from agent.policy import PolicyError
from sandbox.sites import specs
from sandbox.sites.apps import APPS
from training.synthesis import browsing
from training.synthesis.general import Made, synthesise
from training.synthesis.writer import Model, Rules, Writer


class Command(BaseCommand):
    help = "Make GUI-General tasks of a web app, or GUI-Browsing questions over the atlas."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("kind", choices=["general", "browsing"])
        parser.add_argument("--site", choices=sorted(APPS), help="general: only this app")
        parser.add_argument("--count", type=int, default=12, help="tasks (of each app)")
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--writer", default="rules", help='"rules", or a deployment that chats')
        parser.add_argument("--out", type=Path, help="folder; default: where the families look")
        parser.add_argument(
            "--dropped", action="store_true", help="list everything that was dropped"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        folder = options["out"] or Path(settings.SYNTHESISED_TASKS)
        writer = self._writer(options["writer"])
        try:
            if options["kind"] == "browsing":
                made = browsing.synthesise(writer, count=options["count"], seed=options["seed"])
                self._keep(made, folder / f"browsing-atlas-{options['seed']}.jsonl", options)
            else:
                self._general(writer, folder, options)
        except PolicyError as error:
            raise CommandError(f"the writer: {error}") from error

    def _general(self, writer: Writer, folder: Path, options: dict[str, Any]) -> None:
        from sandbox.providers.browser import Fleet, PageSpec
        from sandbox.sites.server import server

        names = [options["site"]] if options["site"] else sorted(APPS)
        with (
            tempfile.TemporaryDirectory(prefix="tandem-synthesis-") as state,
            Fleet(browsers=1, state=Path(state)) as fleet,
        ):
            page = fleet.open(PageSpec(origins=(server().base,)))
            epoch = int(str(page.health()["epoch"]))
            for name in names:
                made = synthesise(
                    page, APPS[name], writer,
                    count=options["count"], seed=options["seed"], epoch=epoch,
                )  # fmt: skip
                self._keep(made, folder / f"web-{name}-{options['seed']}.jsonl", options)

    def _keep(self, made: Made, path: Path, options: dict[str, Any]) -> None:
        specs.write(path, made.tasks)
        self.stdout.write(f"{path.name}: {len(made.tasks)} tasks, {len(made.dropped)} dropped")
        if options["dropped"]:
            for dropped in made.dropped:
                self.stdout.write(f"  {dropped.reason}: {dropped.what}")
        else:
            reasons = Counter(dropped.reason.split("'")[0].strip() for dropped in made.dropped)
            for reason, count in reasons.most_common(6):
                self.stdout.write(f"  {count:3} {reason}")

    def _writer(self, name: str) -> Writer:
        if name == "rules":
            return Rules()
        deployment = Deployment.objects.filter(name=name).first()
        if deployment is None:
            known = ", ".join(Deployment.objects.values_list("name", flat=True))
            raise CommandError(f"no deployment {name!r}; there are: {known or 'none'}")
        chat = deployments.chat(deployment, pictures=_no_pictures)
        return Model(chat, deployment.version or deployment.name)


def _no_pictures(sha256: str) -> bytes:
    raise ValueError("a writer of tasks is shown no picture")
