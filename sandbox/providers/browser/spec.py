"""What a page is to be like: its size, its clock, its seed, and what it may load."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MAX_SIDE = 4096


class BrowserMissing(Exception):
    """No chromium-headless-shell is installed; the message says how to install it."""


@dataclass(frozen=True, slots=True)
class PageSpec:
    """A page of `width` x `height` CSS pixels, one picture pixel each.

    `clock` installs the clock that can be paused and stepped, with `seed` for Math.random. `origins`
    are the address prefixes that the page may load: folders of file:// and ports of this host, such as
    "http://127.0.0.1:8000/". Nothing else is reachable.
    """

    width: int = 1280
    height: int = 720
    clock: bool = False
    seed: int = 0
    origins: tuple[str, ...] = ("file:///",)

    def __post_init__(self) -> None:
        if not (1 <= self.width <= MAX_SIDE and 1 <= self.height <= MAX_SIDE):
            raise ValueError(
                f"a page is 1 to {MAX_SIDE} pixels a side, not {self.width}x{self.height}"
            )
        for origin in self.origins:
            parts = urlsplit(origin)
            if parts.scheme == "file":
                continue
            host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
            if parts.scheme not in ("http", "https", "ws", "wss") or host not in LOOPBACK:
                raise ValueError(
                    f"{origin!r} can't be an origin of a sandbox page: name a file:// folder or a "
                    "port of this host, such as http://127.0.0.1:8000/"
                )
            if not parts.path:
                raise ValueError(f"end the origin {origin!r} with a slash, or it also names others")

    @property
    def loopback(self) -> bool:
        """Whether the page needs this host's ports at all."""
        return any(not origin.startswith("file:") for origin in self.origins)

    def allows(self, url: str) -> bool:
        """Whether the page may load `url`."""
        if url.startswith(("about:", "data:", "blob:")):
            return True
        return ".." not in url and any(url.startswith(origin) for origin in self.origins)
