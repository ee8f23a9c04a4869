"""What the recorder remembers between runs: the server, and what its person agreed to.

Folders by the XDG Base Directory Specification.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from recorder.spool import Consent
from recorder.spool.folder import write_durably


@dataclass(frozen=True, slots=True)
class Settings:
    """`settings.json`; empty where nobody signed in yet."""

    server: str = ""
    consent: Consent | None = None

    @staticmethod
    def load(folder: Path) -> Settings:
        try:
            said = json.loads((folder / "settings.json").read_text("utf-8"))
            consent = Consent(**said["consent"]) if said.get("consent") else None
            return Settings(str(said.get("server", "")), consent)
        except (OSError, ValueError, TypeError, AttributeError):
            return Settings()

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_durably(folder / "settings.json", json.dumps(asdict(self)).encode())

    def at(self, server: str) -> Settings:
        """Return the settings for a server; what was agreed to with another one does not count."""
        return self if server == self.server else replace(self, server=server, consent=None)


def settings_folder() -> Path:
    return _base("XDG_CONFIG_HOME", ".config") / "tandem-recorder"


def recordings_folder() -> Path:
    return _base("XDG_DATA_HOME", ".local/share") / "tandem-recorder" / "recordings"


def _base(variable: str, usual: str) -> Path:
    named = os.environ.get(variable, "")
    return Path(named) if named.startswith("/") else Path.home() / usual
