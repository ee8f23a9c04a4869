"""Where the token of a server is kept: the system's keyring, or where there is none, a file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import keyring
from keyring.errors import KeyringError

_SERVICE = "tandem-recorder"


class Tokens:
    """`folder` is the recorder's settings; `say` tells the person where a token lies in the open."""

    def __init__(self, folder: Path, *, say: Callable[[str], None]) -> None:
        self._file, self._say = folder / "tokens.json", say

    def get(self, server: str) -> str:
        """Return the token of a server; "" if there is none."""
        try:
            found = keyring.get_password(_SERVICE, server)
        except (KeyringError, RuntimeError):
            found = None
        return found or self._open().get(server, "")

    def keep(self, server: str, token: str) -> None:
        try:
            keyring.set_password(_SERVICE, server, token)
        except (KeyringError, RuntimeError):
            self._write({**self._open(), server: token})
            self._say(
                f"This system has no keyring: the token lies in {self._file}, for your account alone."
            )

    def forget(self, server: str) -> None:
        try:
            keyring.delete_password(_SERVICE, server)
        except (KeyringError, RuntimeError):
            pass  # it was in the file, or nowhere
        self._write({name: token for name, token in self._open().items() if name != server})

    def _open(self) -> dict[str, str]:
        try:
            found = json.loads(self._file.read_text())
            return {str(k): str(v) for k, v in found.items()}
        except (OSError, ValueError, AttributeError):
            return {}

    def _write(self, tokens: dict[str, str]) -> None:
        if not tokens:
            self._file.unlink(missing_ok=True)
            return
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = self._file.with_suffix(".new")
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            json.dump(tokens, out)
        draft.replace(self._file)
