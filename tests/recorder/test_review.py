"""The review: only the browser with the token, only edits that can be made, only confirmed bytes."""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import os
import re
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
import soundfile
from PIL import Image

from recorder.redact import Line
from recorder.review import EditError, Edits, Looking, Review, confirm, prepare
from recorder.review import review as open_review
from tests.recorder.made_recording import RATE, Made, Reads, canary_recording, found_by, no_reader
from tests.waiting import until
from trajectory import recording as rec
from trajectory.recording import from_line


@pytest.fixture
def review(tmp_path: Path) -> Iterator[Review]:
    ready = prepare(canary_recording(tmp_path), tmp_path / "never.toml", found_by())
    with Review(ready, Reads) as opened:
        opened.looking.wait(60)
        yield opened


def ask(review: Review, path: str, body: object = None, **headers: str) -> tuple[int, bytes, Any]:
    parts = urlsplit(review.address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    target = path if path.startswith("/") else parts.path + path
    sent = None if body is None else json.dumps(body)
    values = {"Origin": f"http://{review.host}", "Content-Type": "application/json"} if sent else {}
    connection.request("POST" if sent else "GET", target, sent, {**values, **headers})
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, data, answer.headers


def test_only_the_address_with_the_token_opens_it(review: Review) -> None:
    status, page, headers = ask(review, "")
    assert status == 200 and b"<!doctype html>" in page
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "'unsafe" not in headers["Content-Security-Policy"]
    assert ask(review, "/")[0] == 404
    assert ask(review, "/wrong/contents")[0] == 404
    assert ask(review, "contents", Host="evil.example")[0] == 421
    assert ask(review, "contents", **{"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert ask(review, "undo", {}, Origin="http://evil.example")[0] == 403
    assert ask(review, "undo", {}, **{"Content-Type": "text/plain"})[0] == 415


def test_nothing_but_the_redacted_copy_is_served(review: Review) -> None:
    raw = next((review.ready.folder.frames).iterdir()).name
    for path in (
        "../events.jsonl",
        "frames/../../events.jsonl",
        "audio/%2e%2e/x.flac",
        "events.jsonl",
    ):
        assert ask(review, path)[0] == 404
    served = {f.name for f in (review.ready.path / "frames").iterdir()}
    assert ask(review, f"frames/{raw}")[0] == (200 if raw in served else 404)
    assert b"ANARY" not in ask(review, "contents")[1]


def test_a_part_of_a_sound_can_be_asked_for(review: Review) -> None:
    whole = ask(review, "audio/a.flac")[1]
    status, part, headers = ask(review, "audio/a.flac", Range="bytes=10-19")
    assert (status, part) == (206, whole[10:20])
    assert headers["Content-Range"] == f"bytes 10-19/{len(whole)}"
    assert ask(review, "audio/a.flac", Range=f"bytes={len(whole)}-")[0] == 416
    loud = json.loads(ask(review, "peaks/a.flac")[1])
    assert len(loud) == 300 and loud[90] == 0.0 and max(loud[:40]) > 0.1


def test_edits_are_kept_undone_and_refused_where_they_make_no_sense(review: Review) -> None:
    cut = {"op": "cut", "began": 1.0, "ended": 2.0}
    assert ask(review, "edit", cut)[0] == 200
    again = Edits(review.ready.folder.path / "edits.jsonl", steps=5, words=6)
    assert again.made == [cut]
    for wrong in (
        {}, {"op": "cut"}, {"op": "cut", "began": 2, "ended": 1}, {"op": "delete", "index": 99},
        {"op": "blur", "began": 0, "ended": 1, "box": [0, 0, 0, 5]}, {"op": "cut", "began": True, "ended": 2},
        {"op": ["cut"], "began": 1, "ended": 2}, {"op": "words", "index": 0, "text": "x" * 9999},
    ):  # fmt: skip
        assert ask(review, "edit", wrong)[0] == 400, wrong
    assert json.loads(ask(review, "undo", {})[1])["edits"] == []


def test_confirming_writes_exactly_what_the_person_left(review: Review) -> None:
    edits = [
        {"op": "cut", "began": 0.0, "ended": 0.3}, {"op": "delete", "index": 1},
        {"op": "mute", "began": 24.0, "ended": 25.0}, {"op": "words", "index": 1, "text": "keep"},
        {"op": "words", "index": 2, "text": ""}, {"op": "say", "began": 26, "ended": 26.5, "text": "done"},
        {"op": "blur", "began": 21.9, "ended": 22.1, "box": [10, 250, 100, 50]},
    ]  # fmt: skip
    for edit in edits:
        assert ask(review, "edit", edit)[0] == 200
    assert not review.ready.folder.upload.exists()
    assert ask(review, "confirm", {})[0] == 200
    assert review.confirmed.wait(10)
    assert ask(review, "undo", {})[0] == 400
    upload = review.ready.folder.upload
    manifest = json.loads((upload / "manifest.json").read_text())
    files = {p.relative_to(upload).as_posix() for p in upload.rglob("*") if p.is_file()}
    assert {f["path"] for f in manifest["files"]} == files - {"manifest.json"}
    for entry in manifest["files"]:
        data = (upload / entry["path"]).read_bytes()
        assert (hashlib.sha256(data).hexdigest(), len(data)) == (entry["sha256"], entry["bytes"])
    head = json.loads((upload / "recording.json").read_text())
    assert head["review"]["edits"] == len(edits)
    lines = (upload / "steps.jsonl").read_text().splitlines()
    assert [json.loads(line)["began"] for line in lines] == [1.0, 23.0, 23.5, 26.0]
    words = [json.loads(line) for line in (upload / "words.jsonl").read_text().splitlines()]
    assert [w["text"] for w in words] == ["I", "keep", "note", "done", "my", "password"]
    assert words[1]["by"] == "person"
    sound, _ = soundfile.read(upload / "audio/b.flac", dtype="int16")
    assert not sound[9 * RATE : 10 * RATE].any() and sound[6 * RATE : 8 * RATE].any()
    events = [from_line(line) for line in (upload / "events.jsonl").read_text().splitlines()]
    (shown,) = [e for e in events if isinstance(e, rec.FrameTaken) and e.t == 22.0]
    picture = np.asarray(Image.open(upload / "frames" / f"{shown.sha256}.png").convert("RGB"))
    assert (picture[250:300, 10:110] == 128).all()


def test_speech_that_nobody_could_search_must_be_listened_to(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.events.append(rec.WindowChanged(0.1, "gedit", "Notes", (0, 0, 640, 360)))
    made.frame(0.5)
    made.click(1.0, 9, 9)
    made.sound(0.0, 3.0, "a.flac")
    with Review(prepare(made.done(), tmp_path / "never.toml", found_by()), Reads) as review:
        review.looking.wait(60)
        status, answer, _ = ask(review, "confirm", {})
        assert status == 400 and b"listened" in answer
        assert ask(review, "confirm", {"heard": True})[0] == 200


def shows(tmp_path: Path, times: int = 4) -> Made:
    made = Made(tmp_path)
    made.events.append(rec.WindowChanged(0.1, "gedit", "Notes", (0, 0, 640, 360)))
    for n in range(times):
        made.frame(0.5 + n)
    made.click(1.0, 9, 9)
    return made


def test_pictures_that_nobody_could_read_must_be_looked_at(tmp_path: Path) -> None:
    ready = prepare(shows(tmp_path).done(), tmp_path / "never.toml", found_by())
    with Review(ready, no_reader) as review:
        review.looking.wait(60)
        told = json.loads(ask(review, "contents")[1])["pictures"]
        assert told["state"] == "unread" and "installed" in told["cause"]
        status, answer, _ = ask(review, "confirm", {"heard": True})
        assert status == 400 and b"looked at" in answer
        assert ask(review, "confirm", {"looked": True})[0] == 200


def test_nothing_is_confirmed_before_the_last_picture_is_read(tmp_path: Path) -> None:
    go, at_third = threading.Event(), threading.Event()

    class Slow(Reads):
        def read(self, pixels: object, before: object) -> tuple[Line, ...]:
            if self.count == 2:
                at_third.set()
                assert go.wait(60)
            return super().read(pixels, None)

    ready = prepare(shows(tmp_path).done(), tmp_path / "never.toml", found_by())
    secret = Line("password = hunter2-and-more", (40, 60, 200, 20))
    with Review(ready, lambda: Slow(secret)) as review:
        assert at_third.wait(60)
        told = json.loads(ask(review, "progress")[1])
        assert told == {"state": "reading", "done": 2, "of": 4, "cause": ""}
        assert ask(review, "contents")[0] == 200  # the page is there meanwhile
        status, answer, _ = ask(review, "confirm", {"looked": True, "heard": True})
        assert status == 400 and b"picture 2 of 4" in answer
        go.set()
        review.looking.wait(60)
        frames = json.loads(ask(review, "contents")[1])["frames"]
        shown = np.asarray(
            Image.open(io.BytesIO(ask(review, f"frames/{frames[0]['sha256']}.png")[1]))
        )
        assert (shown[60:80, 40:240] == 128).all()
        assert ask(review, "confirm", {})[0] == 200
    for path in (ready.folder.upload / "frames").iterdir():
        picture = np.asarray(Image.open(path).convert("RGB"))
        assert (picture[60:80, 40:240] == 128).all() and not (picture == 128).all()
    assert not (ready.folder.upload / "pictures.jsonl").exists()


def test_reading_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    ready = prepare(shows(tmp_path).done(), tmp_path / "never.toml", found_by())
    first = Reads(Line("4111 1111 1111 1111", (40, 60, 200, 20)))

    class Breaks(Reads):
        def read(self, pixels: object, before: object) -> tuple[Line, ...]:
            if self.count == 2:
                raise ValueError("the model broke")
            return super().read(pixels, None)

    broken = Looking(ready, lambda: Breaks(*first.lines))
    broken.start()
    broken.wait(60)
    assert (broken.state, broken.done) == ("unread", 2) and "broke" in broken.cause
    kept = ready.folder.path / "pictures.jsonl"
    kept.write_bytes(kept.read_bytes() + b'{"sha256": "cut o')
    again = Looking(ready, lambda: first)
    again.start()
    again.wait(60)
    assert (again.state, again.done, first.count) == ("read", 4, 2)
    (removed,) = again.redactions()
    assert removed.began <= 0.5 and removed.ended >= 3.5 and removed.streams == ("frames",)
    third = Reads()
    after = Looking(ready, lambda: third)
    after.start()
    after.wait(60)
    assert (after.done, third.count, after.redactions()) == (4, 0, [removed])


def test_a_wait_that_was_deleted_does_not_come_back(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.events.append(rec.WindowChanged(0.1, "gedit", "Notes", (0, 0, 640, 360)))
    for t, seen in ((0.5, True), (1.3, True), (6.0, True)):
        made.frame(t) if seen else None
    made.click(1.0, 9, 9)
    made.click(8.0, 99, 99)
    ready = prepare(made.done(), tmp_path / "never.toml", found_by())
    assert [s["action"]["type"] for s in ready.lines("steps.jsonl")] == ["click", "wait", "click"]
    edits = Edits(tmp_path / "edits.jsonl", steps=3, words=0)
    edits.add({"op": "delete", "index": 1})
    lines = (confirm(ready, edits, []) / "steps.jsonl").read_text().splitlines()
    assert [json.loads(line)["action"]["type"] for line in lines] == ["click", "click"]


def test_a_title_with_line_separators_is_reviewed_and_confirmed(tmp_path: Path) -> None:
    made = Made(tmp_path)
    title = "one\u2028two\x85three"
    made.events.append(rec.WindowChanged(0.1, "gedit", title, (0, 0, 640, 360)))
    made.frame(0.5)
    made.click(1.0, 9, 9)
    ready = prepare(made.done(), tmp_path / "never.toml", found_by())
    assert [step["window"]["title"] for step in ready.lines("steps.jsonl")] == [title]
    edits = Edits(tmp_path / "edits.jsonl", steps=1, words=0)
    edits.add({"op": "say", "began": 0.5, "ended": 1.0, "text": "here\u2029and there"})
    assert Edits(tmp_path / "edits.jsonl", steps=1, words=0).made == edits.made
    assert (confirm(ready, edits, []) / "manifest.json").exists()


def test_what_is_confirmed_again_can_be_sent_beside_what_was_sent_before(tmp_path: Path) -> None:
    ready = prepare(canary_recording(tmp_path), tmp_path / "never.toml", found_by())
    edits = Edits(tmp_path / "edits.jsonl", steps=99, words=0)
    said = []
    for _ in range(2):
        upload = confirm(ready, edits, [])
        for name in ("manifest.json", "recording.json"):
            said.append(json.loads((upload / name).read_text())["id"])
    assert said[0] == said[1] == ready.folder.head().id
    assert said[2] == said[3] != said[0] and re.fullmatch(r"[0-9a-f]{32}", said[2])


def test_broken_edits_and_broken_words_hold_back(tmp_path: Path) -> None:
    path = tmp_path / "edits.jsonl"
    path.write_text('{"op": "format-disk"}\n')
    with pytest.raises(EditError, match="remove it"):
        Edits(path, steps=1, words=1)


def test_a_list_of_windows_that_was_changed_is_applied_unless_edits_count_on_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(tmp_path)
    made.events.append(rec.WindowChanged(0.1, "gedit", "Diary", (0, 0, 640, 360)))
    made.frame(0.5)
    made.click(1.0, 9, 9)
    folder, denied = made.done(), tmp_path / "never.toml"
    ready = prepare(folder, denied, found_by())
    assert len(ready.lines("steps.jsonl")) == 1

    class Closed:
        def __init__(self, ready: object) -> None:
            raise EditError("nobody looks")

    monkeypatch.setattr("recorder.review.opening.Review", Closed)
    denied.write_text(denied.read_text().replace("apps = [", 'apps = [\n  "gedit",'))
    os.utime(denied, (2e9, 2e9))
    edits, told = folder.path / "edits.jsonl", []
    edits.write_text('{"op": "delete", "index": 0}\n')
    for steps in (1, 0):
        with pytest.raises(EditError, match="nobody looks"):
            open_review(folder, denied, told.append)
        assert len(ready.lines("steps.jsonl")) == steps
        assert sum(str(edits) in line for line in told) == 1
        edits.write_text("")


def test_the_browser_is_shown_the_way_by_a_file_that_only_its_owner_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = canary_recording(tmp_path)
    prepare(folder, tmp_path / "never.toml", found_by())
    told: list[str] = []

    def opens(address: str) -> bool:
        assert address.startswith("file://")
        door = Path(unquote(urlsplit(address).path))
        assert door.stat().st_mode & 0o077 == 0
        found = re.search(r"url=(http://127\.0\.0\.1:\d+/[\w-]{40,}/)", door.read_text())
        assert found
        threading.Thread(target=decides, args=(found[1],), daemon=True).start()
        return True

    def decides(address: str) -> None:
        until(
            lambda: b'"reading"' not in urllib.request.urlopen(address + "progress").read(),
            "all to be read",
        )
        asked = urllib.request.Request(
            address + "confirm", b'{"looked": true}',
            {"Content-Type": "application/json", "Origin": address.rsplit("/", 2)[0]},
        )  # fmt: skip
        urllib.request.urlopen(asked).close()

    monkeypatch.setattr("webbrowser.open", opens)
    open_review(folder, tmp_path / "never.toml", told.append)
    assert (folder.upload / "manifest.json").exists()
    assert not (folder.path / "review.html").exists()
    assert "Confirmed" in told[-1]
