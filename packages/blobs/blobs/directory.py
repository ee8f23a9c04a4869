"""Blobs in a folder: for tests and one machine."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from blobs.store import (
    BlobError,
    MissingBlob,
    StoreUnreachable,
    blob_key,
    checked,
    safe_key,
    sha256_of,
)


class DirectoryBlobStore:
    """Each object is a file below `root`; a file appears under its name only when it is whole."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, data: bytes) -> str:
        sha256 = sha256_of(data)
        if not self.exists(sha256):
            self.put_object(blob_key(sha256), data)
        return sha256

    def get(self, sha256: str) -> bytes:
        return checked(sha256, self.get_object(blob_key(sha256)))

    def exists(self, sha256: str) -> bool:
        return (self.root / blob_key(sha256)).is_file()

    def put_object(self, key: str, source: bytes | Path) -> str:
        key = self._key(key)
        target = self.root / key
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".partial-")
            try:
                with os.fdopen(descriptor, "wb") as partial:
                    if isinstance(source, Path):
                        with source.open("rb") as original:
                            shutil.copyfileobj(original, partial)
                    else:
                        partial.write(source)
                os.replace(name, target)
            except OSError:  # on a full disk what broke off must not stay
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise StoreUnreachable(f"{target}: {error.strerror}") from error
        return self.uri(key)

    def get_object(self, key: str) -> bytes:
        key = self._key(key)
        try:
            return (self.root / key).read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            raise MissingBlob(f"{self.uri(key)} does not exist") from error
        except OSError as error:
            raise StoreUnreachable(f"{self.uri(key)}: {error.strerror}") from error

    def fetch(self, key: str, target: Path) -> None:
        key = self._key(key)
        try:
            shutil.copyfile(self.root / key, target)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            raise MissingBlob(f"{self.uri(key)} does not exist") from error
        except OSError as error:
            raise StoreUnreachable(f"{self.uri(key)}: {error.strerror}") from error

    def put_folder(self, prefix: str, folder: Path) -> str:
        prefix = self._key(prefix)
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put_object(f"{prefix}/{path.relative_to(folder).as_posix()}", path)
        return self.uri(prefix)

    def get_folder(self, prefix: str, folder: Path) -> list[Path]:
        prefix = self._key(prefix)
        keys = self.list_keys(f"{prefix}/")
        if not keys:
            raise MissingBlob(f"{self.uri(prefix)} holds nothing")
        written = []
        for key in keys:
            target = folder / key.removeprefix(f"{prefix}/")
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_name(f".partial-{target.name}")
            shutil.copyfile(self.root / key, partial)
            partial.replace(target)
            written.append(target)
        return written

    def delete(self, key: str) -> None:
        key = self._key(key)
        try:
            (self.root / key).unlink(missing_ok=True)
        except OSError as error:
            raise StoreUnreachable(f"{self.uri(key)}: {error.strerror}") from error

    def list_keys(self, prefix: str = "") -> list[str]:
        # Only the folder that the prefix names is walked.
        start = self.root / prefix.rpartition("/")[0]
        return sorted(
            key
            for path in start.rglob("*")
            if path.is_file() and not path.name.startswith(".partial-")
            if (key := path.relative_to(self.root).as_posix()).startswith(prefix)
        )

    def uri(self, key: str) -> str:
        return f"file://{self.root / key}"

    def _key(self, key: str) -> str:
        if key.startswith("file://"):
            if not key.startswith(f"file://{self.root}/"):
                raise BlobError(f"{key} lies outside of file://{self.root}")
            key = key.removeprefix(f"file://{self.root}/")
        return safe_key(key)
