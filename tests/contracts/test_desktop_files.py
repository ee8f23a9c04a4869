"""What a desktop promises of its files; run against each kind that has programs."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from sandbox.provider import ActionFailed, StaleLease
from tests.contracts.conftest import Whole


def test_files_are_one_tree(desktop: Whole, epoch: int, run: Callable[[str], str]) -> None:
    run("mkdir -p tree/sub; printf abc > tree/b.txt; touch tree/.hidden")
    listed = desktop.list_files("tree")
    assert [(e.path, e.folder, e.size) for e in listed if not e.folder] == [
        ("tree/.hidden", False, 0),
        ("tree/b.txt", False, 3),
    ]
    assert [e.path for e in listed if e.folder] == ["tree/sub"]
    assert abs(listed[0].modified_at - time.time()) < 3600
    assert "tree" in [e.path for e in desktop.list_files()]
    desktop.write_file("tree/sub/up.bin", b"\0\xff", epoch=epoch)
    assert run("od -An -tx1 tree/sub/up.bin").split() == ["00", "ff"]
    for path in ("tree/none", "tree/b.txt", "/etc", "..", "tree/../../.."):
        with pytest.raises(ActionFailed):
            desktop.list_files(path)


def test_big_files_travel_in_parts(desktop: Whole, epoch: int, run: Callable[[str], str]) -> None:
    data = os.urandom(9_000_000)
    desktop.upload("big/file.bin", (data[n : n + 2_500_000] for n in range(0, len(data), 2_500_000)), epoch=epoch)  # fmt: skip
    parts = list(desktop.download("big/file.bin"))
    assert b"".join(parts) == data
    assert len(parts) > 1
    assert [e.path for e in desktop.list_files("big")] == ["big/file.bin"]
    with pytest.raises(ActionFailed, match="allowed"):
        list(desktop.download("big/file.bin", limit=1000))
    with pytest.raises(StaleLease):
        desktop.upload("big/file.bin", [b"x"], epoch=epoch - 1)
    desktop.upload("empty", [], epoch=epoch)
    assert list(desktop.download("empty")) == []
    run("rm -r big")


def test_an_upload_that_breaks_off_leaves_the_old_file(desktop: Whole, epoch: int) -> None:
    desktop.write_file("kept.txt", b"old", epoch=epoch)

    def breaks() -> Iterator[bytes]:
        yield b"new"
        raise KeyError("the source is gone")

    with pytest.raises(KeyError):
        desktop.upload("kept.txt", breaks(), epoch=epoch)
    assert desktop.read_file("kept.txt") == b"old"


def test_links_never_lead_out(desktop: Whole, epoch: int, run: Callable[[str], str]) -> None:
    run(
        "mkdir -p links/real; echo inside > links/real/a.txt; cd links;"
        "ln -s /etc/passwd out.txt; ln -s / root; ln -s ../../../../etc up; ln -s real near;"
        "ln -s $HOME/links/real/a.txt absolute; ln -s loop loop; ln -s /proc/self/root/etc magic"
    )
    assert desktop.read_file("links/near/a.txt") == b"inside\n"
    assert desktop.read_file("links/absolute") == b"inside\n"
    for path in ("out.txt", "root/etc/passwd", "up/passwd", "loop", "magic/passwd"):
        with pytest.raises(ActionFailed):
            desktop.read_file(f"links/{path}")
        with pytest.raises(ActionFailed):
            list(desktop.download(f"links/{path}"))
        with pytest.raises(ActionFailed):
            desktop.write_file(f"links/{path}", b"x", epoch=epoch)
    for path in ("root", "up", "loop"):
        with pytest.raises(ActionFailed):
            desktop.list_files(f"links/{path}")
    assert {e.path for e in desktop.list_files("links") if e.folder} == {"links/real"}
    run("rm -r links")


def test_what_is_no_file_is_refused_at_once(
    desktop: Whole, epoch: int, run: Callable[[str], str]
) -> None:
    run("mkdir odd; mkfifo odd/pipe; truncate -s 40M odd/huge")
    with pytest.raises(ActionFailed, match="not a file"):
        desktop.read_file("odd/pipe")
    with pytest.raises(ActionFailed, match="bigger"):
        desktop.read_file("odd/huge")
    with pytest.raises(ActionFailed, match="allowed"):
        next(desktop.download("odd/huge", limit=1 << 20))
    with pytest.raises(ActionFailed):
        desktop.read_file("odd")
    run("rm -r odd")


def test_names_are_only_names(desktop: Whole, epoch: int, run: Callable[[str], str]) -> None:
    names = [
        "new\nline",
        "\x1b]0;title\x07",
        "<img src=x onerror=alert(1)>",
        "-rf",
        "$(id)",
        "你好",
    ]
    for name in names:
        desktop.write_file(f"names/{name}", name.encode(), epoch=epoch)
    listed = [entry.path for entry in desktop.list_files("names")]
    assert sorted(listed) == sorted(f"names/{name}" for name in names)
    for name in names:
        assert desktop.read_file(f"names/{name}") == name.encode()
    run("printf x > $(printf 'names/bad\\377')")
    assert [e.path for e in desktop.list_files("names") if "bad" in e.path] == ["names/bad\ufffd"]
    with pytest.raises(ActionFailed):
        desktop.read_file("names/bad\ufffd")
    for path in ("names/" + "x" * 300, "n\0ul", "a/" * 3000):
        with pytest.raises(ActionFailed):
            desktop.read_file(path)


def test_deep_and_full_folders(desktop: Whole, run: Callable[[str], str]) -> None:
    run(
        "mkdir deep full; cd deep; mkdir -p $(printf 'd/%.0s' $(seq 400));"
        "cd ../full; seq 5010 | xargs touch"
    )
    with pytest.raises(ActionFailed, match="more than"):
        desktop.list_files("full")
    with pytest.raises(ActionFailed, match="holds too much"):
        list(desktop.watch_files(seconds=1))
    assert list(desktop.watch_files("deep", seconds=0.05)) == []
    assert [e.path for e in desktop.list_files("deep/d/d")] == ["deep/d/d/d"]
    run("rm -rf deep full")


def test_a_folder_is_watched(desktop: Whole, epoch: int, run: Callable[[str], str]) -> None:
    run("mkdir -p seen/sub; echo old > seen/old.txt")
    with contextlib.closing(desktop.watch_files("seen", seconds=20)) as watching:  # type: ignore[type-var]
        first: list[str] = []
        reader = threading.Thread(target=lambda: first.append(next(watching).path))
        reader.start()
        # Whichever comes before the watch has begun is not reported: go on until one is.
        count = 0
        while reader.is_alive():
            count += 1
            assert count < 2000
            desktop.write_file(f"seen/sub/{count}.txt", b"x", epoch=epoch)
        assert first[0].startswith("seen/sub")
        run("echo more >> seen/old.txt")
        assert "seen/old.txt" in (entry.path for entry in watching)
    run("rm -r seen")
