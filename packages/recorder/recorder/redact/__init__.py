"""What must not leave the computer: found, and removed from all streams by the same intervals."""

from recorder.redact.apply import Source, apply, write_lines
from recorder.redact.denied import Denied
from recorder.redact.detectors import Detectors, detectors
from recorder.redact.judge import Judge, judge_words
from recorder.redact.redactions import EVERYTHING, Box, Redaction, RedactionError, Stream

__all__ = [
    "EVERYTHING",
    "Box",
    "Denied",
    "Detectors",
    "Judge",
    "Redaction",
    "RedactionError",
    "Source",
    "Stream",
    "apply",
    "detectors",
    "judge_words",
    "write_lines",
]
