"""Sounds that follow one another without a gap are heard as one: no word is cut where a file ends. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent.speech import Word
from trajectory.recording import AudioWritten

GAP_S = 0.25  # the times of two pieces are known about as exactly
LONGEST_S = 300.0  # so much is heard again when a worker was killed


@dataclass(frozen=True, slots=True)
class Stretch:
    """Pieces of sound in order of time; `sounds` are their events."""

    sounds: tuple[AudioWritten, ...]

    @property
    def seconds(self) -> float:
        return sum(_seconds(sound) for sound in self.sounds)

    def placed(self, words: Iterable[Word], starts: Sequence[float]) -> list[Word]:
        """Return words heard in the joined sound at the recorder's seconds.

        `starts` says at which of its seconds each piece begins there.
        """
        found = []
        for word in words:
            at = max(0, bisect_right(starts, word.began) - 1)
            shift = self.sounds[at].t - starts[at]
            found.append(Word(word.text, shift + word.began, shift + word.ended, word.confidence))
        return found


def stretches(sounds: Iterable[AudioWritten], *, longest_s: float = LONGEST_S) -> list[Stretch]:
    """Return what has to be listened to, in order of time; what the recorder knows as silent is not."""
    found: list[Stretch] = []
    held: list[AudioWritten] = []
    end = long = 0.0
    for sound in sorted(sounds, key=lambda one: one.t):
        apart = sound.silent or abs(sound.t - end) > GAP_S or long + _seconds(sound) > longest_s
        if held and apart:
            found.append(Stretch(tuple(held)))
            held, long = [], 0.0
        if not sound.silent:
            held.append(sound)
            long += _seconds(sound)
        end = sound.t + _seconds(sound)
    if held:
        found.append(Stretch(tuple(held)))
    return found


def _seconds(sound: AudioWritten) -> float:
    return max(0, sound.samples) / max(1, sound.rate)
