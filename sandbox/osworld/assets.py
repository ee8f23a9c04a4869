"""Files that tasks download: taken from a folder, never from the network while a task runs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sandbox.provider import SandboxError


class AssetMissing(SandboxError):
    """A task's file is not in the assets folder; the message names the address and the places tried."""


class Assets:
    """A folder of files by their address.

    A file lies under the sha256 of its address, under the address's path, or, failing both, under its
    last two parts (OSWorld's assets are named by the task's id and the file).
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def find(self, url: str) -> Path | None:
        """Return the file of `url`, None where it is not there."""
        if self.folder is None:
            return None
        path = unquote(urlsplit(url).path).lstrip("/")
        parts = [part for part in path.split("/") if part not in ("", ".", "..")]
        names = [hashlib.sha256(url.encode()).hexdigest(), "/".join(parts), "/".join(parts[-2:])]
        for name in names:
            if name and (file := self.folder / name).is_file():
                return file
        return None

    def read(self, url: str) -> bytes:
        """Return the bytes of `url`; raises AssetMissing."""
        file = self.find(url)
        if file is None:
            raise AssetMissing(
                f"{url} is not in the assets folder"
                + (f" {self.folder.name}/" if self.folder else ": none is given")
                + "; put it there under its path, or import with --assets FOLDER"
            )
        return file.read_bytes()
