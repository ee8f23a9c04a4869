"""Getting a task: of a kind, another one, from a list; and a published query recorded and sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from annotation import jobs
from annotation.models import Application, Consent, Offer, Recording
from annotation.session import pictures
from recorder.cli import main
from recorder.review import Edits, confirm, prepare
from recorder.session import Wish
from recorder.spool import Folder, events
from tests.annotation.test_contributing import function, mail, query
from tests.annotation.test_recordings_upload import token_of
from tests.recorder.conftest import Hand, needs_x
from tests.recorder.made_recording import found_by
from tests.recorder.processes import Recorder
from tests.recorder.test_cli import TASK, Tandem, home, ring, tandem
from tests.waiting import until
from trajectory.recording import Event, Released

__all__ = ["home", "mail", "ring", "tandem"]  # fixtures


@pytest.fixture
def server(live_server: Any, settings: Any, tmp_path: Path) -> Iterator[str]:
    """A live Tandem whose files lie in folders of this test; gives its address."""
    settings.STORAGE_URL = f"file://{tmp_path / 'server' / 'store'}"
    settings.RECORDING_SPOOL = tmp_path / "server" / "spool"
    pictures.store.cache_clear()
    yield live_server.url
    pictures.store.cache_clear()


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, int]]:
    """What the server leaves to its workers."""
    waiting: list[tuple[Any, int]] = []
    monkeypatch.setattr(jobs, "soon", lambda job, pk: waiting.append((job.run, pk)))
    return waiting


@needs_x
@pytest.mark.django_db(transaction=True)
def test_a_published_query_is_offered_by_its_kind_recorded_and_accepted(
    server: str, queue: list[Any], screen: str, hand: Hand, tmp_path: Path, mail: Application,
    annotator: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    Consent.objects.create(version="3", text="Your screen is recorded.")
    where = function(mail, "Search")
    query(where, annotator, "Show how a letter is found")
    two = [
        query(where, annotator, text, kind="exploration")
        for text in ("Find out what filters are", "Find out what labels are")
    ]
    tasks = {f"query/{one.pk}": one.task for one in two}
    recorder = Recorder(tmp_path, server, screen, token=token_of(annotator))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "PYTHON_KEYRING_BACKEND"):
        monkeypatch.setenv(name, recorder.environment[name])

    assert main(["tasks", "--kind", "exploration"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in tasks) and "how a letter is found" not in listed
    assert main(["tasks"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3

    first = recorded(recorder, hand, "--kind", "exploration")
    second = recorded(recorder, hand, "--kind", "exploration", "--another")
    for folder in (first, second):
        head = json.loads((folder.path / "recording.json").read_text())
        assert head["kind"] == "exploration" and head["task"]["id"] in tasks
        assert head["task"]["instruction"] == tasks[head["task"]["id"]].instruction
    assert first.head().task.id != second.head().task.id
    assert Offer.objects.count() == 2
    none = recorder.ask("record", "--kind", "exploration", "--another")
    assert none.returncode == 1 and "no task waits for you" in none.stderr

    ready = prepare(second, tmp_path / "never.toml", found_by())
    edits = Edits(second.path / "edits.jsonl", steps=len(ready.lines("steps.jsonl")), words=0)
    confirm(ready, edits, [])
    assert main(["upload", second.path.name[:8]]) == 0
    row = Recording.objects.get(name=second.path.name)
    assert (row.kind, row.task) == ("exploration", tasks[second.head().task.id])
    assert row.status == Recording.Status.UPLOADED
    while queue:
        job, pk = queue.pop(0)
        job(pk)
    row.refresh_from_db()
    assert row.status == Recording.Status.IN_REVIEW, row.cause
    assert row.steps.count() > 0


def recorded(recorder: Recorder, hand: Hand, *words: str) -> Folder:
    """Record a click beside all windows."""
    with recorder.running(*words) as running:
        folder = recorder.folder
        hand("mousemove", "40", "690", "click", "1")

        def clicked(found: list[Event]) -> bool:
            return any(isinstance(e, Released) for e in found)

        until(lambda: clicked(list(events(folder))), "the click")
        running.process.terminate()
        running.end()
    return folder


def signed_in(tandem: Tandem, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["login", tandem.address]) == 0
    capsys.readouterr()


def test_a_list_can_be_chosen_from_also_by_a_script(
    tandem: Tandem, home: Path, ring: object, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    from recorder.capture import start
    from recorder.commands import record

    taken: list[Wish] = []

    def run(wish: Wish) -> int:
        taken.append(wish)
        return 0

    monkeypatch.setattr(start, "display", lambda: ":0")
    monkeypatch.setattr(record, "_run", run)
    signed_in(tandem, capsys)
    answers = iter(["y", "1", "7", "x"])
    monkeypatch.setattr("builtins.input", lambda: next(answers))
    assert main(["record", "--choose", "--no-window"]) == 0
    assert f"  1  exploration    {TASK['title']}" in capsys.readouterr().out
    assert taken[0].task.id == TASK["id"] and taken[0].kind == "exploration"
    assert taken[0].window is False
    for _ in range(2):
        assert main(["record", "--choose"]) == 1
        assert "is no number from 1 to 1: nothing is recorded" in capsys.readouterr().err
    assert main(["record", "--choose", "--kind", "demonstration"]) == 1
    assert "no task waits for you" in capsys.readouterr().err
    assert main(["record", "--task", TASK["id"], "--kind", "demonstration"]) == 1
    assert "no task '12' of kind demonstration" in capsys.readouterr().err
    assert main(["record", "--own", "My work", "--kind", "exploration"]) == 0
    assert taken[-1].kind == "exploration" and taken[-1].window is True
    assert main(["record", "--own", "My work"]) == 0 and taken[-1].kind == "demonstration"


def test_what_does_not_go_together_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--task", "1", "--own", "x"], ["--another", "--task", "1"], ["--kind", "other"]):
        with pytest.raises(SystemExit):
            main(["record", *words])
        assert "usage" in capsys.readouterr().err


def test_a_server_s_words_do_not_move_the_terminal(
    tandem: Tandem, home: Path, ring: object, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    signed_in(tandem, capsys)
    monkeypatch.setitem(TASK, "title", "a\033]0;b\007c\033[2J")
    assert main(["tasks"]) == 0
    assert "\033" not in capsys.readouterr().out
