"""Pictures and files: by their sha256, or by a key; in S3 or in a folder."""

from blobs.directory import DirectoryBlobStore
from blobs.store import (
    BlobError,
    BlobStore,
    Damaged,
    MissingBlob,
    StoreUnreachable,
    blob_key,
    open_store,
)

__all__ = [
    "BlobError",
    "BlobStore",
    "Damaged",
    "DirectoryBlobStore",
    "MissingBlob",
    "StoreUnreachable",
    "blob_key",
    "open_store",
]
