"""Log lines say which computer they are about: its name, the lease and the epoch.

Whoever works on a computer does so within `about`; the filter puts what it says on every line that is
written meanwhile, also by libraries. With LOG_FORMAT=json each line is one JSON object.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_about: ContextVar[dict[str, str | int]] = ContextVar("about", default={})  # noqa: B039  never changed


@contextmanager
def about(
    *, sandbox: str = "", lease: int | None = None, epoch: int | None = None
) -> Iterator[None]:
    """Say what the lines written in this block, thread and task are about; None and "" say nothing."""
    said = {"sandbox": sandbox, "lease": lease, "epoch": epoch}
    known = {key: value for key, value in said.items() if value not in ("", None)}
    token = _about.set({**_about.get(), **known})  # type: ignore[dict-item]
    try:
        yield
    finally:
        _about.reset(token)


class AboutFilter(logging.Filter):
    """Puts `sandbox`, `lease` and `epoch` on a record, and `about`, the same for people."""

    def filter(self, record: logging.LogRecord) -> bool:
        said = _about.get()
        record.about = "".join(f" {key}={value}" for key, value in said.items())
        for key, value in said.items():
            if not hasattr(record, key):
                setattr(record, key, value)
        return True
