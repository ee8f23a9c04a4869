"""Pieces of sound with intervals silenced: every sample there is zero."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from recorder.redact.redactions import RedactionError

MARGIN_S = 0.25  # the clocks of sound and input differ, and a word begins before it is heard
_BLOCK = 65_536
_END_S = 1e7  # longer than any piece: what has no end is silent to its last sample


def silenced(source: Path, target: Path, spans: Iterable[tuple[float, float]], rate: int) -> int:
    """Write `source` anew as FLAC at `target`, silent within `spans`; return how many samples.

    `spans` are seconds from the first sample. Raises RedactionError where soundfile is missing,
    OSError or RuntimeError where the file is no sound.
    """
    try:
        import soundfile
    except (ImportError, OSError) as error:
        raise RedactionError(
            f"soundfile is missing ({error}): no sound can be silenced, and the recording stays "
            "here. pip install soundfile"
        ) from None
    silent = [(int((a - MARGIN_S) * rate), int((min(b, _END_S) + MARGIN_S) * rate) + 1)
              for a, b in spans if b > -MARGIN_S and a < _END_S]  # fmt: skip
    at = 0
    with soundfile.SoundFile(source) as old:
        with soundfile.SoundFile(
            target, "w", old.samplerate, old.channels, "PCM_16", format="FLAC"
        ) as new:
            for block in old.blocks(_BLOCK, dtype="int16"):
                for began, ended in silent:
                    if ended > at and began < at + len(block):
                        block[max(0, began - at) : max(0, min(len(block), ended - at))] = 0
                new.write(block)
                at += len(block)
    return at
