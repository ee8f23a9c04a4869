"""Screenshots as blobs: stored once under the sha256 of their PNG bytes."""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from threading import Lock

from django.conf import settings

from blobs import BlobStore, open_store
from blobs.store import sha256_of

REMEMBERED = 64  # pictures, about 100 KB each: the guard looks at the newest again

_recent: OrderedDict[str, bytes] = OrderedDict()
_lock = Lock()


@lru_cache(maxsize=1)
def store() -> BlobStore:
    """Return the store of STORAGE_URL."""
    return open_store(settings.STORAGE_URL)


def remember(png: bytes) -> str:
    """Return a picture's sha256; from now on this process can read it, stored yet or not."""
    sha = sha256_of(png)
    with _lock:
        _recent[sha] = png
        _recent.move_to_end(sha)
        while len(_recent) > REMEMBERED:
            _recent.popitem(last=False)
    return sha


def put(png: bytes) -> str:
    """Store a picture and return its sha256; storing it again is fine."""
    remember(png)
    return store().put(png)


def read(sha: str) -> bytes:
    """Return a picture's bytes; raises what the store raises if it has none of that name."""
    with _lock:
        png = _recent.get(sha)
    if png is None:
        png = store().get(sha)
        remember(png)
    return png
