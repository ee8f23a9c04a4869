"""Windows that are never recorded: by application, title, site; a list that its owner may edit."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from recorder.redact.redactions import RedactionError
from trajectory.recording import WindowChanged

APPS = (
    "1password", "bitwarden", "lastpass", "dashlane", "keepass", "keychain access",
    "credential manager", "seahorse", "kwallet", "kleopatra", "pinentry", "proton pass", "enpass",
    "authenticator", "polkit", "gcr-prompter",
)  # fmt: skip
TITLES = (
    "password", "passwort", "mot de passe", "contraseña", "senha", "пароль", "パスワード", "密码", "密碼",
    "bank", "banque", "banco", "paypal", "credit card", "kreditkarte", "wallet", "private browsing",
    "incognito", "inprivate",
)  # fmt: skip
SITES = (
    "paypal.com", "wise.com", "stripe.com", "chase.com", "wellsfargo.com", "bankofamerica.com",
    "accounts.google.com", "login.microsoftonline.com", "vault.bitwarden.com", "my.1password.com",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Denied:
    """Parts of names, in lower case; a site stands for its sub-domains too."""

    apps: tuple[str, ...] = APPS
    titles: tuple[str, ...] = TITLES
    sites: tuple[str, ...] = SITES

    @staticmethod
    def load(path: Path) -> Denied:
        """Read the list at `path`, and write the default there first if there is none.

        Raises RedactionError for one that can't be read: a broken list denies everything.
        """
        try:
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(_text(Denied()), "utf-8")
            values = tomllib.loads(path.read_text("utf-8"))
            lists = [values.pop(name) for name in ("apps", "titles", "sites")]
            if values or not all(isinstance(word, str) for words in lists for word in words):
                raise ValueError("it has three lists of texts: apps, titles, sites")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RedactionError(
                f"the list of windows that are never shown can't be read: {path}: {error}. "
                "Mend it, or remove it to get the default back."
            ) from None
        return Denied(*(tuple(word.lower() for word in words if word) for words in lists))

    def cause(self, window: WindowChanged) -> str:
        """Return why nothing of this window may be kept, "" where it may."""
        app, title = window.app.lower(), window.title.lower()
        if window.private:
            return "private window"
        if any(word in app for word in self.apps):
            return "application on the list"
        if any(word in title for word in (*self.titles, *self.apps)):
            return "title on the list"
        try:
            host = urlsplit(window.url).hostname or ""
        except ValueError:
            return "an address that can't be read"
        if any(host == site or host.endswith("." + site) for site in self.sites):
            return "site on the list"
        return ""


def _text(denied: Denied) -> str:
    lines = [
        "# Nothing of a window is kept whose application, title or site has one of these words."
    ]
    for name in ("apps", "titles", "sites"):
        words = "".join(f"  {_quoted(word)},\n" for word in getattr(denied, name))
        lines.append(f"{name} = [\n{words}]")
    return "\n".join(lines) + "\n"


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
