"""Stage two: what was said. A transcript of the contributor's own wins; else every sound is heard."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from agent import speech
from agent.speech import Transcriber, Word
from annotation.models import Hearing, Recording, Utterance
from annotation.recordings import content
from annotation.recordings.reading import fetched
from annotation.recordings.stretches import LONGEST_S, Stretch, stretches
from annotation.recordings.utterances import utterances


def hear(recording: Recording) -> None:
    """Write the utterances of a recording; raises SpeechError, BadContent."""
    said = [(one, by) for by, words in _words(recording).items() for one in utterances(words)]
    said.sort(key=lambda pair: (pair[0].began, pair[0].ended))
    rows = [
        Utterance(
            recording=recording, index=index, began=one.began, ended=one.ended, text=one.text,
            words=[[w.text, w.began, w.ended, w.confidence] for w in one.words],
            confidence=one.confidence, by=by,
        )
        for index, (one, by) in enumerate(said)
    ]  # fmt: skip
    with transaction.atomic():
        row = Recording.objects.select_for_update().get(pk=recording.pk)
        if row.status != Recording.Status.TRANSCRIBING:
            return
        row.utterances.all().delete()
        row.hearings.all().delete()
        Utterance.objects.bulk_create(rows, batch_size=1000)
        row.status, row.cause = Recording.Status.ALIGNING, ""
        row.save(update_fields=["status", "cause"])


def _words(recording: Recording) -> dict[str, list[Word]]:
    """Return the words by who found them: "person", "recorder", or the name of an engine.

    A transcript that the contributor's computer made, and its person read, is not made again. Lines
    that a person alone wrote are thoughts added to the sound, no transcript of it: it is heard too.
    """
    paths = set(recording.files.values_list("path", flat=True))
    sounds = sorted(path for path in paths if path.startswith("audio/"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written: list[Word] = []
        if "words.jsonl" in paths:
            written, by_person = content.words(fetched(recording, "words.jsonl", folder))
            if not all(by_person):
                return {"person" if any(by_person) else "recorder": written}
        if not sounds:
            return {"person": written}
        engine, heard = _heard(recording, sounds, folder)
        return {"person": written, engine: heard}


def _heard(recording: Recording, sounds: list[str], folder: Path) -> tuple[str, list[Word]]:
    """Return the engine's name and the words of all sounds at the recorder's seconds.

    A sound that no event places in time says nothing about an action, and is left out.
    """
    events = content.events(fetched(recording, "events.jsonl", folder)).sounds
    listed = {Path(path).name for path in sounds}
    engine = speech.load(
        settings.SPEECH_URL, keep=Path(settings.SPEECH_DIR), token=settings.SPEECH_TOKEN
    )
    todo = stretches(
        (event for name, event in events.items() if name in listed),
        # A known text is that of one file.
        longest_s=0.0 if isinstance(engine, speech.KnownText) else LONGEST_S,
    )
    kept = dict(recording.hearings.filter(engine=engine.name).values_list("sound", "words"))
    whole, done = sum(one.seconds for one in todo) or 1.0, 0.0
    found: list[Word] = []
    for stretch in todo:
        sound, done = stretch.sounds[0].name, done + stretch.seconds
        if sound not in kept:
            words = _listen(recording, stretch, engine, folder)
            kept[sound] = [[w.text, w.began, w.ended, w.confidence] for w in words]
            if not _keep(recording, engine.name, sound, kept[sound], int(100 * done / whole)):
                break
        found += [Word(*values) for values in kept.pop(sound)]
    return engine.name, found


def _listen(
    recording: Recording, stretch: Stretch, engine: Transcriber, folder: Path
) -> list[Word]:
    files = [fetched(recording, f"audio/{one.name}", folder) for one in stretch.sounds]
    if len(files) == 1:
        words = stretch.placed(engine.transcribe(files[0]), [0.0])
    else:
        joined = folder / f"{files[0].stem}.wav"
        starts = speech.join(files, joined)
        words = stretch.placed(engine.transcribe(joined), starts)
        joined.unlink()
    for file in files:
        file.unlink()
    return words


def _keep(recording: Recording, engine: str, sound: str, words: list[Any], percent: int) -> bool:
    """Keep what was heard in a stretch; False where nobody waits for it any more."""
    with transaction.atomic():
        row = Recording.objects.select_for_update().get(pk=recording.pk)
        if row.status != Recording.Status.TRANSCRIBING:
            return False
        Hearing.objects.get_or_create(
            recording=row, engine=engine, sound=sound, defaults={"words": words}
        )
        row.heard, row.attempts, row.cause = percent, 0, ""
        row.save(update_fields=["heard", "attempts", "cause"])
    recording.attempts = 0  # what goes forward is not given up
    return True
