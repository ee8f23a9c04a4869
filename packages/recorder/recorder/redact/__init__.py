"""What must not leave the computer: found, and removed from all streams by the same intervals."""

from recorder.redact.apply import Source, apply, write_lines
from recorder.redact.denied import Denied
from recorder.redact.judge import Judge
from recorder.redact.redactions import EVERYTHING, Box, Redaction, RedactionError, Stream
from recorder.redact.screen.misread import hidden
from recorder.redact.screen.reader import Line, Read, Reader, reader
from recorder.redact.text.detectors import Detectors, detectors
from recorder.redact.text.passwords import Passwords, passwords
from recorder.redact.voice.said import judge_words

__all__ = [
    "EVERYTHING",
    "Box",
    "Denied",
    "Detectors",
    "Judge",
    "Line",
    "Passwords",
    "Read",
    "Reader",
    "Redaction",
    "RedactionError",
    "Source",
    "Stream",
    "apply",
    "detectors",
    "hidden",
    "judge_words",
    "passwords",
    "reader",
    "write_lines",
]
