"""Stage two: what was said. A transcript of the contributor's own wins; else every sound is heard."""

from __future__ import annotations

import tempfile
from pathlib import Path

from django.conf import settings
from django.db import transaction

from agent import speech
from agent.speech import Word
from annotation.models import Recording, Utterance
from annotation.recordings import content
from annotation.recordings.reading import fetched
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
    """Return the engine's name and the words of all sounds at the recorder's seconds."""
    began = content.events(fetched(recording, "events.jsonl", folder)).sounds
    engine = speech.load(
        settings.SPEECH_URL, keep=Path(settings.SPEECH_DIR), token=settings.SPEECH_TOKEN
    )
    found: list[Word] = []
    for path in sounds:
        since = began.get(Path(path).name)
        if since is None:
            continue  # a sound that no event places in time says nothing about an action
        file = fetched(recording, path, folder)
        for word in engine.transcribe(file):
            found.append(Word(word.text, since + word.began, since + word.ended, word.confidence))
        file.unlink()
    return engine.name, found
