"""A recording on the contributor's disk: its folder, an append-only writer, a reader that streams."""

from recorder.spool.folder import Consent, Folder, Head, Screen, SpoolError, Task, new_id
from recorder.spool.reading import events
from recorder.spool.writing import Spool

__all__ = [
    "Consent", "Folder", "Head", "Screen", "Spool", "SpoolError", "Task", "events", "new_id",
]  # fmt: skip
