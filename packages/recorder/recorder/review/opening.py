"""Opens the review in the person's browser, and waits for what they decide."""

from __future__ import annotations

import html
import webbrowser
from collections.abc import Callable
from pathlib import Path

from recorder.review.prepare import prepare
from recorder.review.server import Review
from recorder.spool import Folder
from recorder.spool.folder import write_durably


def review(folder: Folder, denied: Path, tell: Callable[[str], None]) -> None:
    """Serve the review of a recording until its person has confirmed it.

    `denied` is the list of windows that are never shown. Raises RedactionError, SpoolError,
    EditError, OSError; KeyboardInterrupt leaves the edits as they are.
    """
    tell("Looking for what must not leave this computer…")
    newer, edits = _is_newer(denied, folder), folder.path / "edits.jsonl"
    edited = edits.exists() and edits.stat().st_size > 0
    if newer and edited:  # they count the steps of the copy as it is
        tell(f"{denied} was changed after this review began: remove {edits} to have it applied.")
    ready = prepare(folder, denied, anew=newer and not edited)
    door = folder.path / "review.html"
    with Review(ready) as opened:
        tell(f"Review it in your browser: {opened.address}")
        # An address on a command line is seen by everybody on this computer; a file of one's own is not.
        where = html.escape(opened.address, quote=True)
        page = f'<meta charset="utf-8"><meta http-equiv="refresh" content="0; url={where}">'
        write_durably(door, page.encode())
        door.chmod(0o600)
        try:
            webbrowser.open(door.as_uri())
            opened.confirmed.wait()
        finally:
            door.unlink(missing_ok=True)
    tell("Confirmed: it may be uploaded now.")


def _is_newer(denied: Path, folder: Folder) -> bool:
    """Whether the list of windows was changed after the redacted copy was made."""
    try:
        made = (folder.path / "redacted" / "events.jsonl").stat().st_mtime
        return denied.stat().st_mtime > made
    except FileNotFoundError:
        return False
