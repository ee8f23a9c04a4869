"""A made recording: its files, its manifest, and a recorder that sends them through the API."""

from __future__ import annotations

import hashlib
import io
import json
import uuid
from typing import Any

from django.test import Client
from PIL import Image

from annotation.models import Recording
from annotation.recordings import reviewing
from trajectory.recording import FORMAT, AudioWritten, ClockRead, FrameTaken, Stopped, to_line

SIZE = (320, 200)


def png(colour: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", SIZE, colour).save(file, "PNG")
    return file.getvalue()


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def lines(records: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def click(x: int, y: int) -> dict[str, Any]:
    return {"type": "click", "x": x, "y": y, "button": "left", "count": 1, "modifiers": []}


class Recorded:
    """The folder `upload/` of a recording in memory; tests change `files` before they send it."""

    def __init__(self, *, words: bool = True, name: str = "") -> None:
        self.name = name or uuid.uuid4().hex
        self.about: dict[str, Any] = {
            "format": FORMAT,
            "id": self.name,
            "kind": "demonstration",
            "task": {"id": "", "title": "Save it", "instruction": "Save the report."},
            "consent": {"version": "1", "accepted_at": 1.0},
            "platform": "linux",
            "screen": {"width": SIZE[0], "height": SIZE[1]},
            "wall_start": 1_700_000_000.0,
        }
        # The colours are of this recording: no two recordings share a frame by chance.
        shade = int(self.name[:5], 16)
        pictures = [png(f"#{(shade * 7 + n) % 0xFFFFFF:06x}") for n in range(2)]
        events = [
            FrameTaken(0.5, 0.4, sha(pictures[0]), *SIZE),
            ClockRead(1.0, 1_700_000_001.0),
            FrameTaken(4.5, 4.4, sha(pictures[1]), *SIZE),
            Stopped(9.0),
        ]
        self.steps = [
            {"index": 0, "began": 3.0, "ended": 3.1, "action": click(30, 40),
             "frame": sha(pictures[0]), "frame_gap_ms": 20,
             "element": {"role": "button", "name": "Save", "bounds": [20, 30, 60, 20]},
             "window": {"app": "editor", "title": "report", "url": ""}},
            {"index": 1, "began": 6.0, "ended": 7.0, "action": {"type": "type", "text": "budget", "submit": False},
             "frame": sha(pictures[1]), "frame_gap_ms": 20, "element": None, "window": {}},
        ]  # fmt: skip
        self.files: dict[str, bytes] = {
            "events.jsonl": "".join(to_line(event) + "\n" for event in events).encode(),
            "steps.jsonl": lines(self.steps),
            "redactions.jsonl": b"",
            **{f"frames/{sha(data)}.png": data for data in pictures},
        }
        if words:
            self.files["words.jsonl"] = lines(
                [{"began": 1.0 + n * 0.4, "ended": 1.3 + n * 0.4, "text": text, "confidence": 0.9, "by": "asr"}
                 for n, text in enumerate(("I", "click", "save"))]
                + [{"began": 4.6 + n * 0.4, "ended": 4.9 + n * 0.4, "text": text, "confidence": 0.8, "by": "asr"}
                   for n, text in enumerate(("then", "type", "budget"))]
            )  # fmt: skip

    def manifest(self) -> dict[str, Any]:
        self.files["recording.json"] = json.dumps(self.about).encode()
        return {
            "id": self.name,
            "format": FORMAT,
            "recording": self.about,
            "confirmed_at": 1_700_000_100.0,
            "files": [
                {"path": path, "sha256": sha(data), "bytes": len(data)}
                for path, data in self.files.items()
            ],
        }

    def blob(self, digest: str) -> bytes:
        return next(data for data in self.files.values() if sha(data) == digest)


class Sender:
    """What a recorder does to the API, with the answers as they come."""

    def __init__(self, token: str) -> None:
        self.client = Client()
        self.headers = {"Authorization": f"Bearer {token}"}

    def get(self, url: str) -> Any:
        return self.client.get(url, headers=self.headers)

    def post(self, url: str, body: object = None) -> Any:
        return self.client.post(
            url, json.dumps(body or {}), content_type="application/json", headers=self.headers
        )

    def offset(self, recorded: Recorded, digest: str) -> Any:
        return self.client.head(self._file(recorded, digest), headers=self.headers)

    def patch(self, recorded: Recorded, digest: str, at: int, data: bytes) -> Any:
        headers = {**self.headers, "Upload-Offset": str(at)}
        return self.client.patch(
            self._file(recorded, digest), data, content_type="application/octet-stream",
            headers=headers,
        )  # fmt: skip

    def send(self, recorded: Recorded) -> Any:
        """Announce, send every file in parts, complete; returns the last answer."""
        answer = self.post("/api/recordings/", recorded.manifest())
        assert answer.status_code in (200, 201), answer.content
        for digest in answer.json()["missing"]:
            data = recorded.blob(digest)
            half = len(data) // 2
            for at, part in ((0, data[:half]), (half, data[half:])):
                if part or not data:
                    done = self.patch(recorded, digest, at, part)
                    assert done.status_code == 204, done.content
        return self.post(f"/api/recordings/{recorded.name}/complete")

    def _file(self, recorded: Recorded, digest: str) -> str:
        return f"/api/recordings/{recorded.name}/files/{digest}"


def arrived(sender: Sender, queue: Any, recorded: Recorded | None = None) -> Recording:
    """Send a recording and let every stage run."""
    recorded = recorded or Recorded()
    assert sender.send(recorded).status_code == 202
    queue.run()
    return Recording.objects.get(name=recorded.name)


def signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def accept(row: Recording, *reviewers: Any) -> Recording:
    for reviewer in reviewers:
        row = reviewing.judge(row, reviewer=reviewer, verdict="accepted")
    return row


def heard(recorded: Recorded) -> Recorded:
    """Add a piece of sound to a recording; its bytes are no sound that anything could decode."""
    recorded.files["audio/0001.flac"] = b"fLaC" + recorded.name.encode()
    event = to_line(AudioWritten(2.0, "0001.flac", 16_000)) + "\n"
    told = recorded.files["events.jsonl"].decode().splitlines(keepends=True)
    recorded.files["events.jsonl"] = "".join([*told[:2], event, *told[2:]]).encode()
    return recorded
