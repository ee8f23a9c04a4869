"""What every store does, and how an address becomes one."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from pathlib import Path
from typing import Protocol
from urllib.parse import parse_qs, unquote, urlsplit


class BlobError(Exception):
    """Something about the blob store went wrong."""


class MissingBlob(BlobError):
    """The store has nothing under this key."""


class Damaged(BlobError):
    """What came back is not what its name says."""


class StoreUnreachable(BlobError):
    """The store does not answer, or refuses us."""


class BlobStore(Protocol):
    """Bytes under their sha256, and objects under keys like `checkpoints/sft-1/step-40/model.bin`.

    Everywhere a key is taken, the URI that a `put_` gave for it is taken too.
    Every call may raise StoreUnreachable.
    """

    def put(self, data: bytes) -> str:
        """Store bytes once and return their sha256; storing them again changes nothing."""
        ...

    def get(self, sha256: str) -> bytes:
        """Return the bytes of this sha256; raises MissingBlob, Damaged."""
        ...

    def exists(self, sha256: str) -> bool: ...

    def put_object(self, key: str, source: bytes | Path) -> str:
        """Store bytes or a file under `key`, in place of what was there, and return its URI."""
        ...

    def get_object(self, key: str) -> bytes:
        """Return the object's bytes; raises MissingBlob."""
        ...

    def fetch(self, key: str, target: Path) -> None:
        """Write the object to the file `target`, block by block; raises MissingBlob."""
        ...

    def put_folder(self, prefix: str, folder: Path) -> str:
        """Store every file below `folder` under `prefix/` and return the prefix's URI."""
        ...

    def get_folder(self, prefix: str, folder: Path) -> list[Path]:
        """Write every object below `prefix/` into `folder`; raises MissingBlob if there is none.

        A file appears under its name only when it is whole.
        """
        ...

    def delete(self, key: str) -> None:
        """Delete the object; one that is not there is fine."""
        ...

    def list_keys(self, prefix: str = "") -> list[str]:
        """Return the keys that start with `prefix`, sorted; an empty list if there is none."""
        ...

    def uri(self, key: str) -> str:
        """Return where `key` lies, without any secret: what a row keeps."""
        ...


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def blob_key(sha256: str) -> str:
    """Return the key of a blob; raises MissingBlob for what can't be a sha256."""
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise MissingBlob(f"{sha256[:80]!r} is not a sha256")
    return f"blobs/{sha256[:2]}/{sha256}"


def safe_key(key: str) -> str:
    """Return `key`; raises BlobError if it would leave the store."""
    parts = key.split("/")
    if not key or key.startswith("/") or any(part in {"", ".", ".."} for part in parts):
        raise BlobError(f"{key!r} is not a key: say a/b/c, without empty parts or dots")
    return key


def checked(sha256: str, data: bytes) -> bytes:
    """Return `data`; raises Damaged if its sha256 is another one."""
    found = sha256_of(data)
    if found != sha256:
        raise Damaged(f"blob {sha256[:12]} holds bytes of {found[:12]}: restore it from a backup")
    return data


@lru_cache(maxsize=16)
def open_store(url: str) -> BlobStore:
    """Return the store at `s3://KEY:SECRET@host:port/bucket?region=..&secure=1` or `file:///folder`.

    The same address gives the same store, with its connections. Raises BlobError.
    """
    from blobs.directory import DirectoryBlobStore

    parts = urlsplit(url)
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        return DirectoryBlobStore(Path(unquote(parts.path)))
    bucket = parts.path.strip("/")
    if parts.scheme == "s3" and parts.hostname and bucket and "/" not in bucket:
        from blobs.s3 import S3BlobStore  # boto3 takes half a second to import

        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        secure = query.get("secure", "0") not in {"", "0", "false", "no"}
        port = f":{parts.port}" if parts.port else ""
        return S3BlobStore(
            endpoint=f"{'https' if secure else 'http'}://{parts.hostname}{port}",
            bucket=bucket,
            key=unquote(parts.username or ""),
            secret=unquote(parts.password or ""),
            region=query.get("region", "us-east-1"),
        )
    raise BlobError(
        f"{parts.scheme}://... is no blob store: say s3://KEY:SECRET@host:port/bucket or file:///folder"
    )
