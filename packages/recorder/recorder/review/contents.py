"""What the page of a review shows: one object, and the loudness of the sound."""

from __future__ import annotations

from itertools import count
from typing import Any

from recorder.review.edits import Edits
from recorder.review.looking import Looking
from recorder.review.prepare import Reviewable
from trajectory.recording import AudioWritten, FrameTaken, Missed, Paused, Resumed

MAX_FRAMES = 4000
PEAKS_PER_S = 20


def contents(ready: Reviewable, edits: Edits, looking: Looking) -> dict[str, Any]:
    """Return all that the page shows, as JSON: times in recorder seconds."""
    head = ready.folder.head()
    frames: list[dict[str, Any]] = []
    audio: list[dict[str, Any]] = []
    gaps: list[dict[str, Any]] = []
    end, last, every, seen = 0.0, "", 1, count()
    for event in ready.events():
        end = max(end, event.t)
        match event:
            case FrameTaken(t=t, sha256=sha256) if sha256 != last:
                last = sha256
                if next(seen) % every == 0:
                    frames.append({"t": t, "sha256": sha256})
                if len(frames) > MAX_FRAMES:  # two hours still have a page that opens
                    frames, every = frames[::2], every * 2
            case AudioWritten(t=t, name=name, samples=samples, rate=rate, silent=silent):
                end = max(end, t + samples / rate)
                audio.append({"t": t, "name": name, "seconds": samples / rate, "silent": silent})
            case Paused(t=t):
                gaps.append({"began": t, "ended": t, "cause": "paused"})
            case Resumed(t=t) if gaps:
                gaps[-1]["ended"] = t
            case Missed(t=t, since=since, cause=cause) if cause != "redacted":
                gaps.append({"began": since, "ended": t, "cause": cause})
    redactions = ready.lines("redactions.jsonl") + [r.to_dict() for r in looking.redactions()]
    return {
        "id": head.id,
        "kind": head.kind,
        "task": {"title": head.task.title, "instruction": head.task.instruction},
        "screen": {"width": head.screen.width, "height": head.screen.height},
        "duration": end,
        "steps": ready.lines("steps.jsonl"),
        "words": ready.lines("words.jsonl"),
        "frames": frames,
        "audio": audio,
        "gaps": gaps,
        "redactions": [r | {"ended": min(r["ended"], end)} for r in redactions],
        "edits": edits.made,
        # Nobody but its person can find a secret in speech that has no transcript.
        "unheard": bool(audio) and not ready.lines("words.jsonl"),
        "pictures": looking.to_dict(),
        "confirmed": ready.folder.upload.is_dir(),
    }


def peaks(ready: Reviewable, name: str) -> list[float]:
    """Return the loudness of a piece of sound, PEAKS_PER_S values a second, 0 to 1.

    Raises OSError or RuntimeError where it can't be read.
    """
    import soundfile

    loud: list[float] = []
    with soundfile.SoundFile(ready.path / "audio" / name) as sound:
        size = max(1, sound.samplerate // PEAKS_PER_S)
        for block in sound.blocks(size * 256, dtype="float32"):
            for at in range(0, len(block), size):
                loud.append(round(float(abs(block[at : at + size]).max()), 3))
    return loud
