"""Stages of a recording's way, each in a process of its own: what it takes, and how much memory.

`python -m benchmarks.long_stages STAGE,... FOLDER [SERVER TOKEN]` prints a line of JSON for each. FOLDER
is the recorder's; stages of the server find their recording by its name, in the database of DATABASE_URL.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

RECORDER = ("read", "reduce", "redact", "review", "confirm", "upload")
SERVER = ("check", "hear", "align", "zip")
Work = dict[str, Callable[[], int]]


def memory(field: str, pid: str = "self") -> int:
    """Return a line of /proc/PID/status, `VmRSS` or `VmHWM`, in bytes.

    Not ru_maxrss: that one begins with the size of the process that started this one.
    """
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"no {field} in /proc/{pid}/status: this needs Linux")


def main() -> None:
    names, folder, *rest = sys.argv[1:]
    stages = names.split(",")
    if set(stages) <= set(SERVER):
        work = _server(Path(folder).name)
    else:
        work = _recorder(folder, *rest)
    for stage in stages:  # forked when all is imported: what one leaves behind helps no other
        if (child := os.fork()) == 0:
            print(json.dumps(_measured(stage, work[stage])), flush=True)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            raise SystemExit(f"{stage} broke")


def _measured(stage: str, work: Callable[[], int]) -> dict[str, Any]:
    before, began = memory("VmRSS"), time.monotonic()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    try:
        count = work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    spent = time.monotonic() - began
    peak = memory("VmHWM")
    return {
        "stage": stage, "before": before, "peak": peak, "seconds": round(spent, 2), "count": count,
    }  # fmt: skip


def _recorder(name: str, server: str = "", token: str = "") -> Work:
    """Return the stages of the recorder's side, with everything that they need imported."""
    import recorder.cli  # noqa: F401
    from recorder.redact import Detectors
    from recorder.reduce import steps
    from recorder.review import Edits, Looking, confirm, prepare
    from recorder.review.contents import contents
    from recorder.server.client import Client
    from recorder.spool import Folder, events
    from recorder.upload import send

    folder = Folder(Path(name))
    denied = folder.path / "never.toml"

    def ready(anew: bool = False) -> Any:
        return prepare(folder, denied, Detectors([]), anew=anew)

    def edits(of: Any) -> Edits:
        return Edits(folder.path / "edits.jsonl", steps=len(of.lines("steps.jsonl")), words=0)

    def upload() -> int:
        done = 0

        def tell(sent: Any) -> None:
            nonlocal done
            done = sent.done

        send(folder, Client(server, token), tell=tell)
        return done

    def review() -> int:
        made = ready()
        return len(contents(made, edits(made), Looking(made))["steps"])

    def confirmed() -> int:
        made = ready()
        return len(list(confirm(made, edits(made), []).rglob("*")))

    return {
        "read": lambda: sum(1 for _ in events(folder)),
        "reduce": lambda: sum(1 for _ in steps(events(folder))),
        "redact": lambda: sum(1 for _ in ready(anew=True).events()),
        "review": review,
        "confirm": confirmed,
        "upload": upload,
    }


class Ear:
    """Hears eight words in every piece that is no silence; decoding and cutting are the real ones."""

    name = "made"

    def transcribe(self, sound: Path) -> list[Any]:
        from agent.speech import Word
        from agent.speech.sound import pieces

        return [
            Word(word, piece.began + at * 0.3, piece.began + at * 0.3 + 0.2, 1.0)
            for piece in pieces(sound)
            for at, word in enumerate(["now", "i", "click", "on", "save", "and", "look", "around"])
        ]


def _server(name: str) -> Work:
    """Return the stages of the server's side; their rows are in the database when they are over."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    import tempfile

    import av  # noqa: F401

    from agent import speech
    from annotation.models import Recording
    from annotation.recordings import aligning, reading, rights, transcribing

    if not os.environ.get("REAL_EAR"):
        speech.load = lambda *_, **__: Ear()  # type: ignore[assignment]
    rows = Recording.objects.select_related("owner", "task")

    def zipped() -> int:
        with tempfile.TemporaryFile() as file:
            rights.write_zip(rows.get(name=name), file)
            return file.tell()

    def done(verb: Callable[[Any], None], made: str) -> Callable[[], int]:
        def run() -> int:
            verb(row := rows.get(name=name))
            return int(getattr(row, made).count())

        return run

    return {
        "check": done(reading.read, "steps"),
        "hear": done(transcribing.hear, "utterances"),
        "align": done(aligning.align, "steps"),
        "zip": zipped,
    }


if __name__ == "__main__":
    main()
