"""Whether a window shows a browser's private mode: what nobody is to keep."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

# How browsers say it in their titles, in the languages that have most speakers.
_TITLES = (
    "incognito", "inprivate", "private browsing", "private window", "private tab",
    "navigation privée", "navigation privee", "privater modus", "privates fenster", "inkognito",
    "navegación privada", "de incógnito", "navegación de incógnito", "navegação privada",
    "navigazione anonima", "in incognito", "приватный просмотр", "инкогнито", "プライベートブラウジング",
    "シークレット", "隐身", "隐私浏览", "無痕", "시크릿", "gizli", "tryb prywatny",
)  # fmt: skip
_OPTIONS = (
    "--incognito",
    "--inprivate",
    "--private-window",
    "-private-window",
    "--private",
    "-private",
)
BROWSERS = (
    "chrom", "firefox", "librewolf", "brave", "microsoft-edge", "msedge", "opera", "vivaldi", "safari",
    "epiphany", "falkon", "tor browser", "navigator",
)  # fmt: skip


def is_browser(app: str) -> bool:
    return any(name in app for name in BROWSERS)


def is_private(app: str, title: str, pid: int) -> bool:
    """Tell a private window by its title, or by how its browser was started."""
    if not is_browser(app):
        return False
    if any(word in title.lower() for word in _TITLES):
        return True
    with suppress(OSError):
        line = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") if pid else []
        return any(option.encode() in line for option in _OPTIONS)
    return False
