"""`manage.py evaluate`: how good a deployment is at a fixed list of tasks."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agent.models import Deployment
from sandbox.provider import SandboxError
from training.errors import Refused
from training.evaluations import evaluations, suites
from training.evaluations.exports import FORMATS
from training.evaluations.waiting import Progress, WorkerBroke, own_worker, playing, wait
from training.models import Evaluation, Rollout
from training.rollouts import rollouts


def seeds(text: str) -> range:
    """Read the seeds of an option."""
    try:
        return suites.seeds(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error


class Command(BaseCommand):
    help = (
        "Play a suite of tasks with a deployment and report its successes. Given only --name, go on "
        "with an evaluation that exists, or show its report."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        names = "; ".join(f"{name}: {title}" for name, title in suites.titles().items())
        add = parser.add_argument
        add("--suite", help=f"{names}; or a .json file")
        add("--deployment", help="its name; without one, the annotators' partner")
        add("--seeds", type=seeds, default=range(10_000, 10_010), help="A:B, B not included")
        add("--max-steps", type=int, default=evaluations.MAX_STEPS)
        add("--repeats", type=int, default=1, help="samples of each task and seed, for pass@k")
        add("--temperature", type=float, help="default: 0, with --repeats 1")
        add("--no-pictures", action="store_true", help="keep none; for readers of elements only")
        add("--name", help="of the evaluation; default: suite, deployment and a number")
        add("--format", choices=FORMATS, default="table")
        add("--out", type=Path, help="a file for the report; default: the terminal")
        add("--no-wait", action="store_true", help="queue it and return")
        add("--worker", action="store_true", help="play the episodes in this process")
        add("--environments", type=int, default=4, help="with --worker: episodes at once")
        add("--against", help="another evaluation, to be compared with on the same tasks and seeds")
        add("--cancel", action="store_true", help="end the evaluation of --name")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._handle(options)
        except Refused as error:
            raise CommandError(str(error)) from error

    def _handle(self, options: dict[str, Any]) -> None:
        if options["cancel"]:
            self._say(f"cancelled {evaluations.cancel(_named(options['name']))}")
            return
        against = _named(options["against"]) if options["against"] else None
        evaluation = self._begin(options) if options["suite"] else self._again(options["name"])
        if options["no_wait"]:
            self._say(
                f"{evaluation} is queued; manage.py evaluate --name {evaluation} waits for it"
            )
            return
        self._wait(evaluation, options)
        report = evaluations.report(evaluation)
        text = FORMATS[options["format"]](report)
        if options["out"]:
            options["out"].write_text(text, encoding="utf-8")
            self._say(f"wrote {options['out']}")
        else:
            self.stdout.write(text, ending="")
        if against:
            found = evaluations.beside(against, evaluation)
            words = found.in_words(against.name, evaluation.name) if found else "nothing in common"
            self._say(words)
        if report["state"] != Rollout.State.DONE:
            raise CommandError(
                f"{evaluation} is {report['state']}: {report['error'] or 'not whole'}"
            )

    def _begin(self, options: dict[str, Any]) -> Evaluation:
        suite = suites.load(options["suite"])
        deployment = _deployment(options["deployment"])
        evaluation = evaluations.begin(
            name=options["name"] or evaluations.free_name(suite.name, deployment.name),
            suite=suite,
            deployment=deployment,
            seeds=options["seeds"],
            repeats=options["repeats"],
            max_steps=options["max_steps"],
            temperature=options["temperature"],
            pictures=not options["no_pictures"],
        )
        self._say(
            f"{evaluation}: {evaluation.rollout.total} episodes of {len(suite.tasks)} tasks; "
            f"{deployment.name} reads {deployment.reads}"
        )
        return evaluation

    def _again(self, name: str | None) -> Evaluation:
        """Return an evaluation that exists; one that is paused goes on."""
        evaluation = _named(name)
        if evaluation.rollout.state == Rollout.State.PAUSED:
            reason = evaluation.rollout.error or "by somebody"
            evaluation.rollout = rollouts.resume(evaluation.rollout)
            self._say(f"{evaluation} was paused ({reason}); it goes on")
        return evaluation

    def _wait(self, evaluation: Evaluation, options: dict[str, Any]) -> None:
        """Wait to the end; Ctrl-C leaves the episodes to the workers and says how to go on."""
        try:
            with ExitStack() as stack:
                broke: Callable[[], Exception | None] | None = None
                if options["worker"] and evaluation.rollout.state in Rollout.LIVE:
                    worker = stack.enter_context(own_worker(options["environments"]))
                    broke = stack.enter_context(playing(worker))
                wait(evaluation, say=self._progress, broke=broke)
        except (WorkerBroke, SandboxError) as error:
            raise CommandError(f"{error}\n{_go_on(evaluation)}") from error
        except KeyboardInterrupt:
            self._say(f"\nNo longer waiting. {_go_on(evaluation)}")
            raise SystemExit(130) from None

    def _progress(self, now: Progress) -> None:
        self._say(now.line + (f" ({now.trouble})" if now.trouble else ""))

    def _say(self, text: str) -> None:
        self.stderr.write(text)


def _named(name: str | None) -> Evaluation:
    if not name:
        raise CommandError("say --suite for a new evaluation, or --name of one that exists")
    row = Evaluation.objects.select_related("rollout__deployment").filter(name=name).first()
    if row is None:
        newest = Evaluation.objects.order_by("-pk").values_list("name", flat=True)[:5]
        raise CommandError(f"no evaluation {name!r}; the newest are: {', '.join(newest) or 'none'}")
    return row


def _deployment(name: str | None) -> Deployment:
    wanted = (
        Deployment.objects.filter(name=name) if name else Deployment.objects.filter(is_partner=True)
    )
    row = wanted.first()
    if row is None:
        names = ", ".join(Deployment.objects.order_by("name").values_list("name", flat=True))
        missing = f"no deployment {name!r}" if name else "no deployment is the partner"
        raise CommandError(f"{missing}; there are: {names or 'none yet, see the admin'}")
    return row


def _go_on(evaluation: Evaluation) -> str:
    return (
        f"What is not finished waits for a rollout worker. "
        f"Go on: manage.py evaluate --name {evaluation} --worker. "
        f"End it: manage.py evaluate --name {evaluation} --cancel."
    )
