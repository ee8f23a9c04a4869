"""Evaluations as rows: begun, played by a real worker on paper pages, kept, reported, exported."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.core.management import CommandError, call_command

from agent.models import Deployment
from tests.training.rollout_toys import PaperPages, play_all, toys, worker  # noqa: F401
from training.errors import BadConfig, NameTaken, WrongState
from training.evaluations import evaluations, suites
from training.evaluations.exports import FORMATS
from training.management.commands import evaluate as command
from training.models import Episode, Evaluation, Rollout

pytestmark = [pytest.mark.usefixtures("toys"), pytest.mark.django_db(transaction=True)]


@pytest.fixture
def deployment() -> Deployment:
    return Deployment.objects.create(
        name="paper", kind="scripted", reads="elements", dialect="element", version="v1"
    )


@pytest.fixture
def suite_file(tmp_path):
    path = tmp_path / "suite.json"
    path.write_text(
        json.dumps({"name": "paper-suite", "version": 1, "tasks": ["toys/n2", "toys/n9"]})
    )
    return path


@pytest.fixture
def begin(deployment, suite_file):
    def begin(name="e", **options) -> Evaluation:
        values = {"seeds": range(3), "max_steps": 5} | options
        suite = suites.load(str(suite_file))
        return evaluations.begin(name=name, suite=suite, deployment=deployment, **values)

    return begin


def test_what_was_asked_is_kept_whatever_changes_later(begin, deployment):
    row = begin(repeats=2)
    assert (row.rollout.purpose, row.rollout.total) == (Rollout.Purpose.EVALUATE, 12)
    assert row.rollout.config["max_steps"] == 5
    assert row.rollout.config["temperature"] == evaluations.SAMPLED
    assert begin("greedy").rollout.config["temperature"] == evaluations.GREEDY
    assert (row.version, row.reads) == ("v1", "elements")
    assert [task["id"] for task in row.tasks] == ["toys/n2", "toys/n9"]
    assert row.tasks[0]["oracle"] is False
    deployment.reads = "screenshot"
    deployment.save()
    row.refresh_from_db()
    assert evaluations.report(row)["reads"] == "elements"


def test_what_cannot_be_begun_is_refused_and_leaves_nothing(begin):
    begin()
    with pytest.raises(NameTaken, match="there is an evaluation called 'e'"):
        begin()
    with pytest.raises(BadConfig, match="max_steps"):
        begin("other", max_steps=0)
    with pytest.raises(BadConfig, match="seeds"):
        begin("other", seeds=[])
    assert Rollout.objects.count() == Evaluation.objects.count() == 1
    assert evaluations.free_name("e", "x") == "e-x-1"


def test_an_evaluation_is_played_settled_and_reported(begin):
    row = begin()
    live = evaluations.report(row)
    assert (live["state"], live["overall"]["open"], live["curve"]) == ("queued", 6, [])
    assert not evaluations.settle(row)
    # The second page is lost at its first click: another attempt, and no reward for it.
    play_all(worker(PaperPages(lambda n: 0 if n == 1 else None)))
    assert evaluations.settle_all() == 1
    assert evaluations.settle_all() == 0
    row.refresh_from_db()
    report = evaluations.report(row)
    assert report["versions"] == ["v1"]
    assert report["overall"]["success"]["value"] == 0.5
    assert report["overall"]["attempts_lost"] == 1
    assert report["tasks"]["toys/n2"]["successes"] == 3
    assert report["tasks"]["toys/n9"]["steps"] == 5
    assert [p["value"] for p in report["curve"]] == [0, 0.5, 0.5, 0.5, 0.5]
    Episode.objects.all().delete()
    assert evaluations.report(row)["overall"]["judged"] == 6  # kept


def test_a_cancelled_evaluation_keeps_what_was_played(begin):
    row = begin()
    Episode.objects.filter(task="n2").update(state="done", reward=1.0, steps=2)
    evaluations.cancel(row)
    assert row.results["overall"]["cancelled"] == 3
    assert row.results["overall"]["success"]["value"] == 1.0
    with pytest.raises(WrongState):
        evaluations.cancel(row)


def test_every_export_says_what_the_deployment_reads(begin):
    row = begin()
    play_all(worker())
    row = Evaluation.objects.get()
    report = evaluations.report(row)
    for name, write in FORMATS.items():
        text = write(report)
        assert "toys/n9" in text
        if name != "csv":
            assert "elements" in text
    assert json.loads(FORMATS["json"](report))["suite"] == "paper-suite"
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](report))))
    assert [one["scope"] for one in rows] == ["overall", "family", "task", "task"]
    assert float(rows[2]["success"]) == 1.0
    assert "| toys/n2 | 3 | 100.0 | 43.9 to 100.0 | 1.000 |" in FORMATS["md"](report)
    assert "In no mean" not in FORMATS["table"](report)


# -- suites --------------------------------------------------------------------------------------


def test_a_suite_is_its_tasks_and_their_checksums(suite_file):
    first = suites.load(str(suite_file))
    assert (first.name, len(first.tasks)) == ("paper-suite", 2)
    assert suites.load(str(suite_file)).checksum == first.checksum
    suite_file.write_text(suite_file.read_text().replace('"version": 1', '"version": 2'))
    assert suites.load(str(suite_file)).checksum != first.checksum


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        '{"name": "x", "version": 1, "tasks": []}',
        '{"name": "x", "tasks": ["toys/n1"]}',
        '{"name": "x", "version": 1, "tasks": ["toys/n1", "toys/n1"]}',
        '{"name": "x", "version": 1, "tasks": ["toys/n99"]}',
        '{"name": "x", "version": 1, "tasks": ["nothing/n1"]}',
    ],
)
def test_a_file_that_is_no_suite_says_why(tmp_path, text):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(suites.NoSuite, match=r"bad\.json"):
        suites.load(str(path))


def test_an_unknown_suite_names_the_known_ones():
    with pytest.raises(suites.NoSuite, match="smoke, miniwob-20, miniwob, games, lmgame"):
        suites.load("osworld-verified")


# -- the command ---------------------------------------------------------------------------------


@pytest.fixture
def run(suite_file, deployment, monkeypatch, capsys):
    """Call the command with paper pages where it wants browsers; returns what it wrote."""

    class Own:
        def __init__(self, environments):
            self.environments = environments

        def __enter__(self):
            return worker(environments=self.environments)

        def __exit__(self, *error):
            pass

    monkeypatch.setattr(command, "own_worker", Own)
    monkeypatch.setattr("training.evaluations.waiting.POLL_S", 0.05)

    def run(*arguments, suite=True):
        first = ["--suite", str(suite_file), "--deployment", "paper"] if suite else []
        call_command("evaluate", *first, *arguments)
        return capsys.readouterr()

    return run


def test_the_command_plays_waits_and_reports(run, tmp_path):
    said = run("--seeds", "5:7", "--max-steps", "4", "--worker", "--name", "first")
    assert "4 of 4 episodes, 50.0 % solved so far" in said.err
    assert "paper reads elements" in said.err
    assert "toys/n2" in said.out
    assert Evaluation.objects.get().results["overall"]["judged"] == 4
    out = tmp_path / "out.json"
    again = run("--name", "first", "--format", "json", "--out", str(out), suite=False)
    assert json.loads(out.read_text())["seeds"] == [5, 6]
    assert "done: 4 of 4" in again.err
    better = run("--seeds", "5:7", "--max-steps", "9", "--worker", "--against", "first")
    assert "No difference is shown between first and paper-suite-paper-1 on 4" in better.err


def test_the_command_can_queue_say_who_is_missing_and_cancel(run, monkeypatch):
    said = run("--seeds", "0:1", "--no-wait", "--name", "later")
    assert "manage.py evaluate --name later" in said.err
    assert Rollout.objects.get().state == "queued"

    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr("training.evaluations.waiting.time.sleep", interrupt)
    with pytest.raises(SystemExit) as stopped:
        run("--name", "later", suite=False)
    assert stopped.value.code == 130
    assert Rollout.objects.get().state == "queued"
    Rollout.objects.update(state="paused", error="no policy")
    with pytest.raises(SystemExit):
        run("--name", "later", suite=False)
    assert Rollout.objects.get().state == "running"
    run("--name", "later", "--cancel", suite=False)
    assert Rollout.objects.get().state == "cancelled"
    with pytest.raises(CommandError, match="later is cancelled"):
        run("--name", "later", suite=False)


def test_ctrl_c_gives_the_episodes_back(run, monkeypatch, capsys):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "wait", interrupted)
    with pytest.raises(SystemExit):
        run("--seeds", "0:2", "--worker", "--name", "mine")
    said = capsys.readouterr().err
    assert "no rollout worker" not in said
    assert "manage.py evaluate --name mine --worker" in said
    assert not Episode.objects.filter(state="running").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--suite", "nothing"], "no suite 'nothing'"),
        (
            ["--suite", "games", "--deployment", "nobody"],
            "no deployment 'nobody'; there are: paper",
        ),
        (["--name", "nothing"], "no evaluation 'nothing'"),
        ([], "say --suite"),
        (["--suite", "games", "--seeds", "5:5"], "has no seed"),
        (["--suite", "games", "--seeds", "many"], "are no seeds"),
    ],
)
def test_what_the_command_can_not_do_it_says(deployment, arguments, message):
    with pytest.raises(CommandError, match=message):
        call_command("evaluate", *arguments)
