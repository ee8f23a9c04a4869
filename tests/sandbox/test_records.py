"""What a provider leaves on disk goes away; what a start takes of the host is its own."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from sandbox.provider import ProvisionFailed
from sandbox.providers import folder, records


def test_a_folder_goes_though_a_dying_process_still_writes_into_it(tmp_path: Path) -> None:
    profile = tmp_path / "killed" / "profile"
    profile.mkdir(parents=True)
    begun = threading.Event()

    def write() -> None:
        for n in range(3000):
            try:
                (profile / f"file-{n}").write_text("late")
            except FileNotFoundError:
                return
            begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    begun.wait(60)
    records.remove(tmp_path / "killed")
    writer.join()
    assert not (tmp_path / "killed").exists()


def test_of_starts_at_one_moment_each_gets_a_user_of_its_own() -> None:
    first, count = 61_900, 4  # nobody's: no provider takes users from here
    with ExitStack() as starts:
        users = [starts.enter_context(folder.own_uid(first, count)) for _ in range(count)]
        assert sorted(users) == list(range(first, first + count))
        with pytest.raises(ProvisionFailed, match="all 4 user ids"):
            starts.enter_context(folder.own_uid(first, count))
    with folder.own_uid(first, count) as uid:
        assert uid in users  # they were given back


def test_removing_twice_is_fine(tmp_path: Path) -> None:
    records.remove(tmp_path / "never-there")


def test_what_keeps_coming_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(place: Path) -> None:
        raise OSError(39, "Directory not empty")

    monkeypatch.setattr(records.shutil, "rmtree", refuse)
    with pytest.raises(OSError, match="not empty"):
        records.remove(tmp_path, seconds=0.05)
