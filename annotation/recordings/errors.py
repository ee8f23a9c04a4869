"""What a recorder is refused: a code for the program, a message for its person, one status each."""

from __future__ import annotations

from annotation.errors import Refused


class Wrong(Refused):
    """The recorder was refused; `code` and `status` are what it reads, the message is for people."""

    status = 400

    def __init__(self, code: str, message: str, **more: object) -> None:
        self.code, self.more = code, more
        super().__init__(message)


class BadManifest(Wrong):
    """The manifest, or the recording that it describes, can't be read."""


class Conflict(Wrong):
    """It contradicts what is already here."""

    status = 409


class TooLarge(Wrong):
    """More than one recording or file may have."""

    status = 413


class TooMuch(Wrong):
    """A limit of this person is reached; `retry_after_s` says when to come back."""

    status = 429

    def __init__(self, code: str, message: str, *, retry_after_s: int) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(code, message)


class WrongHash(Wrong):
    """The whole file is not what its name says; it begins again at 0."""

    status = 460


class NoRoom(Wrong):
    """The server can't store it now; nothing that came before is lost."""

    status = 507


class BadContent(Exception):
    """A file that came whole does not say what it should; the message names file, line and way out."""
