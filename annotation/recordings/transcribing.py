"""Stage two: what was said. The contributor's own transcript wins; else every sound is heard."""

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
    words, by = _words(recording)
    rows = [
        Utterance(
            recording=recording, index=index, began=said.began, ended=said.ended, text=said.text,
            words=[[w.text, w.began, w.ended, w.confidence] for w in said.words],
            confidence=said.confidence, by=by,
        )
        for index, said in enumerate(utterances(words))
    ]  # fmt: skip
    with transaction.atomic():
        row = Recording.objects.select_for_update().get(pk=recording.pk)
        if row.status != Recording.Status.TRANSCRIBING:
            return
        row.utterances.all().delete()
        Utterance.objects.bulk_create(rows, batch_size=1000)
        row.status, row.cause = Recording.Status.ALIGNING, ""
        row.save(update_fields=["status", "cause"])


def _words(recording: Recording) -> tuple[list[Word], str]:
    paths = set(recording.files.values_list("path", flat=True))
    sounds = sorted(path for path in paths if path.startswith("audio/"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "words.jsonl" in paths:
            words, person = content.words(fetched(recording, "words.jsonl", folder))
            return words, "person" if person else "recorder"
        if not sounds:
            return [], ""
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
                found.append(
                    Word(word.text, since + word.began, since + word.ended, word.confidence)
                )
            file.unlink()
        return found, engine.name
