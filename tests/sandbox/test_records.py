"""What a provider leaves on disk goes away, also while something still writes there."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from sandbox.providers import records


def test_a_folder_goes_though_a_dying_process_still_writes_into_it(tmp_path: Path) -> None:
    folder = tmp_path / "killed" / "profile"
    folder.mkdir(parents=True)
    begun = threading.Event()

    def write() -> None:
        for n in range(3000):
            try:
                (folder / f"file-{n}").write_text("late")
            except FileNotFoundError:
                return
            begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    begun.wait(5)
    records.remove(tmp_path / "killed")
    writer.join()
    assert not (tmp_path / "killed").exists()


def test_removing_twice_is_fine(tmp_path: Path) -> None:
    records.remove(tmp_path / "never-there")


def test_what_keeps_coming_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path) -> None:
        raise OSError(39, "Directory not empty")

    monkeypatch.setattr(records.shutil, "rmtree", refuse)
    with pytest.raises(OSError, match="not empty"):
        records.remove(tmp_path, seconds=0.05)
